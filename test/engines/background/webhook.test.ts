import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { accept, startReceiver } from "../../../trials/harness/webhook-receiver.ts";
import { until } from "../../timing.ts";
import { createDatabase } from "../store/postgres-database.ts";

const EVENTS = 100;

const stack = new AsyncDisposableStack();
const database = stack.use(await createDatabase());
const receiver = stack.use(startReceiver());
const { webhooks, audit } = await database.open();
const audits = [audit, (await database.open()).audit];
await webhooks.openWebhook("source");

const children = Array.from({ length: 3 }, () =>
  Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, "../../background/webhook-child.ts"),
      database.url,
      receiver.url,
    ],
    {
      stdout: "pipe",
    },
  ),
);
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(children.map(({ exited }) => exited));
  await stack.disposeAsync();
});

/** Kills the process that delivers. */
async function killSender(): Promise<void> {
  const find = async () => {
    const state = await webhooks.readWebhook();
    return children.find(({ pid, killed }) => !killed && `${pid}` === state?.server);
  };
  await until(async () => (await find()) !== undefined, 30_000);
  const sender = await find();
  sender?.kill("SIGKILL");
  await sender?.exited;
}

async function record(count: number): Promise<void> {
  for (let n = 0; n < count; n += audits.length) {
    const at = Date.now();
    await Promise.all(
      audits.map((each) => each.recordAudit({ at, actor: { kind: "server" }, action: "key.banned" })),
    );
  }
}

test("of three servers one delivers; all entries arrive in order while the receiver is down and two of them are killed", async () => {
  await record(EVENTS / 2);
  await receiver.when(() => receiver.accepted().length >= 10);
  await killSender();
  await receiver.when(() => receiver.accepted().length >= 20);
  receiver.behave(() => new Response(null, { status: 503 }));
  const before = receiver.received.length;
  await record(EVENTS / 2);
  await receiver.when(() => receiver.received.length >= before + 2);
  await killSender();
  receiver.behave(accept);
  await receiver.when(() => receiver.accepted().length >= EVENTS);
  const { items } = await audit.listAudit({ after: 0n, limit: EVENTS });
  expect(receiver.accepted()).toEqual(items.map(({ id }) => Number(id)));
  expect(receiver.unsigned).toEqual([]);
  const ids = Map.groupBy(receiver.received, ({ entry }) => entry).values();
  for (const events of ids) expect(new Set(events.map(({ id }) => id)).size).toBe(1);
}, 120_000);
