import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClock } from "../../src/clock.ts";
import { shownWebhookUrl } from "../../src/domain/webhooks.ts";
import { accept, startReceiver, webhookFlags } from "../../trials/harness/webhook-receiver.ts";
import { until } from "../timing.ts";
import { cleanUpAfterAll, cliDirectory, failure, InProcessCli, type InProcessServer } from "./cli.ts";

cleanUpAfterAll();

const TOKEN = "petadmin_0123456789abcdefghijklmnopqrstuvwxyz";
const cli = new InProcessCli();
const receiver = startReceiver();
const shownUrl = shownWebhookUrl(receiver.url);
afterAll(receiver.close);
let server: InProcessServer;
let elsewhere: string;
/** A server has the clock of the machine, and a signature is valid for 30 seconds. */
const run = (line: string, of = cli) => of.run(line, {}, { clock: createClock() });

beforeAll(async () => {
  const tokenFile = join(cliDirectory(), "token");
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  const flags = webhookFlags(receiver, "operator.*");
  server = await cli.serve(["--admin-token-file", tokenFile, ...flags]);
  elsewhere = `--server ${new URL(server.adminUrl).origin} --admin-token-file ${tokenFile}`;
});

test("webhook test prints the status, the time and the first line, here and on a server elsewhere", async () => {
  receiver.behave(() => new Response("welcome \u001b[31m\nmore"));
  for (const [of, flags] of [
    [cli, ""],
    [new InProcessCli(), ` ${elsewhere}`],
  ] as const) {
    const { code, out } = await run(`webhook test${flags}`, of);
    expect(code).toBe(0);
    expect(out.replace(/\d+ ms/, "N ms")).toBe(`${shownUrl} responds 200 in N ms: welcome \\u{1b}[31m\n`);
    expect(JSON.parse((await run(`webhook test --json${flags}`, of)).out)).toMatchObject({
      isDelivered: true,
    });
  }
  expect(receiver.received.filter(({ type }) => type === "webhook.test")).toHaveLength(4);
  expect(receiver.unsigned).toEqual([]);
});

test("webhook test fails if the receiver does not accept the event, or is not there", async () => {
  receiver.behave(() => new Response("no such hook", { status: 404 }));
  const { code, err } = await run("webhook test");
  expect([code, err.replace(/\d+ ms/, "N ms")]).toEqual([
    1,
    `${shownUrl} responds 404 in N ms: no such hook`,
  ]);
  receiver.behave(() => new Response("\u{200e}".repeat(10_000), { status: 500 }));
  expect((await run("webhook test")).err).toEndWith(`: ${"\\u{200e}".repeat(200)}`);
  await receiver.goAway();
  expect((await run("webhook test")).err).toMatch(/ does not respond: \w*refused\w*$/i);
  receiver.comeBack();
});

test("webhook test says that a receiver is slow, here and on a server elsewhere", async () => {
  const late = Promise.withResolvers<Response>();
  receiver.behave(() => late.promise);
  const lines = ["webhook test", `webhook test ${elsewhere}`];
  const results = await Promise.all(lines.map((line) => run(line)));
  const slow = failure(`${shownUrl} does not respond: no response within 5 seconds`);
  expect(results).toEqual([slow, slow]);
  late.resolve(accept());
});

test("webhook show: the URL, the events, what waits, and the last attempts of all servers", async () => {
  const [rejected, accepted] = [new Response(null, { status: 503 }), Promise.withResolvers<Response>()];
  let attempts = 0;
  receiver.behave(() => (++attempts === 1 ? rejected : accepted.promise));
  await run("operators create --name ann --role viewer");
  const shown = async () => (await run("webhook show")).out;
  const waiting =
    /^Waiting +1, the oldest since \S+\n\nTIME +ENTRY +EVENT +MS +RESPONSE\n\S+ +\d+ +operator\.created +\d+ +503$/m;
  await until(async () => /\b503$/m.test(await shown()), 10_000);
  expect(await shown()).toMatch(waiting);
  expect(await shown()).toStartWith(`URL      ${shownUrl}\nEvents   operator.*\n`);
  accepted.resolve(accept());
  await until(async () => /^Waiting +0\n/m.test(await shown()), 10_000);
  const { out } = await run(`webhook show --json ${elsewhere}`, new InProcessCli());
  expect(JSON.parse(out)).toMatchObject({
    url: shownUrl,
    events: ["operator.*"],
    waiting: 0,
    oldestWaitingAt: null,
    deliveries: [{ type: "operator.created", status: 200, error: null }, { status: 503 }],
  });
});

test("without a webhook, and without a server, both commands say so", async () => {
  const other = new InProcessCli();
  const nobody = await run("webhook show", other);
  expect(nobody.err).toMatch(/^no server runs in .*, or name another one with --server$/);
  const plain = await other.serve();
  expect((await run("webhook show", other)).out).toBe(
    `There is no webhook in production (data: ${other.dataDir}): --webhook-url is not set.\n`,
  );
  const message = "The server has no webhook: --webhook-url is not set.";
  expect(await run("webhook test", other)).toEqual(failure(message));
  await plain.stop();
});
