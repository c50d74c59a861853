import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { hostname } from "node:os";
import { createClock } from "../../../src/clock.ts";
import { NO_ACTIVITY } from "../../../src/domain/servers.ts";
import { scheduler } from "../../../src/runtime/event-loop.ts";
import { ServerSecret } from "../../../src/operator/server-secret.ts";
import { HEARTBEAT_MS } from "../../../src/rate-limit/server-register.ts";
import { openStores } from "../../../src/adapters.ts";
import { adminFlags, type PetstoreServer, startPetstore } from "../../../trials/harness/petstore.ts";
import { freePorts } from "../../../trials/harness/server.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { sendToValkey, valkeyUrl } from "../../../trials/harness/valkey.ts";
import { startAdminService } from "../../admin/admin-service.ts";
import { cleanUp, InProcessCli } from "../../cli/cli.ts";
import { until } from "../../timing.ts";
import { storageIn } from "../../data-directory.ts";

/* Servers that share PostgreSQL and Valkey, and ask one another for their requests. */

const [databaseUrl, limitsUrl] = await Promise.all([postgresUrl(), valkeyUrl()]);
const storage = ["--database-url", databaseUrl, "--limits-url", limitsUrl];
const REGISTER = "petstore:production:servers";
const TOKEN = "the-token-of-all-servers";
/** A slow machine takes longer than the default timeout. */
const flags = [...adminFlags(TOKEN), ...storage, "--limits-timeout", "1s"];
const start = (port = 0, ...more: string[]) => startPetstore(["--port", `${port}`, ...flags, ...more]);

interface Page {
  readonly items: readonly { readonly requestId: string }[];
  readonly servers: readonly { readonly id: string; readonly problem: string | null }[];
}

async function get<T>({ adminUrl }: Pick<PetstoreServer, "adminUrl">, path: string): Promise<T> {
  const response = await fetch(adminUrl + path, { headers: { Authorization: `Bearer ${TOKEN}` } });
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

const problemsOn = async (server: PetstoreServer) =>
  (await get<Page>(server, "/api/requests")).servers.map(({ problem }) => problem);
const serversOn = async (server: PetstoreServer) =>
  (await get<{ items: { id: string }[] }>(server, "/api/servers")).items.map(({ id }) => id);

/** A command in a directory of its own, in which no server runs. */
const run = (...line: string[]) =>
  new InProcessCli().run([...line, ...storage], {}, { clock: createClock({ onStep: () => {} }) });

let first: PetstoreServer;
let second: PetstoreServer;
beforeAll(async () => {
  first = await start();
  second = await start();
}, 60_000);
afterAll(async () => {
  await Promise.all([first.stop(), second.stop()]);
  await cleanUp();
});

test("a server tells where it listens as soon as it does, without a heartbeat", async () => {
  const { setInterval } = scheduler;
  const noTimer = { close: () => {}, unref: () => {} };
  using _ = spyOn(scheduler, "setInterval").mockImplementation((work, ms) =>
    ms === HEARTBEAT_MS ? noTimer : setInterval.call(scheduler, work, ms),
  );
  const limitsUrls = [await valkeyUrl()];
  const { adminUrl, stop } = await startAdminService({ token: TOKEN }, { databaseUrl, limitsUrls });
  const entries = () => sendToValkey(limitsUrls[0] ?? "", "HVALS", REGISTER);
  await until(async () => (await entries()).includes(`"adminUrl":"${adminUrl}"`));
  await stop();
}, 60_000);

test("servers ask one another", async () => {
  await until(async () => (await problemsOn(second)).every((problem) => problem === null));
  expect(await problemsOn(second)).toHaveLength(2);
});

test("what is not signed with the secret of the servers is counted and listed, and never asked", async () => {
  const asked: string[] = [];
  using trap = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      asked.push(url);
      return Response.json({ items: [], nextCursor: null, servers: [] });
    },
  });
  const adminUrl = trap.url.origin;
  const entries = (await sendToValkey(limitsUrl, "HVALS", REGISTER)).split(/,(?=\d+:\{)/);
  const copied = entries.map((entry) => JSON.parse(entry.slice(entry.indexOf(":") + 1)));
  const [now = ""] = (await sendToValkey(limitsUrl, "TIME")).split(",");
  const identity = { ...NO_ACTIVITY, version: "1.1.0", startedAt: 0 };
  const forged = [
    { ...identity, id: "unsigned", name: copied[0].name, adminUrl },
    { ...copied[0], id: "copied", adminUrl },
    { ...copied[0], id: "copied-with-its-url" },
  ];
  for (const each of forged)
    await sendToValkey(limitsUrl, "HSET", REGISTER, each.id, `${now}000:${JSON.stringify(each)}`);
  const third = await start();
  const { servers } = await get<Page>(third, "/api/requests");
  const problems = new Map(servers.map(({ id, problem }) => [id, problem]));
  for (const { id } of forged)
    expect(problems.get(id)).toStartWith("its entry in Valkey has no valid signature");
  expect(servers.filter(({ problem }) => problem === null)).toHaveLength(3);
  expect(await serversOn(third)).toEqual(expect.arrayContaining(forged.map(({ id }) => id)));
  expect(asked).toEqual([]);
  await third.stop();
  for (const { id } of forged) await sendToValkey(limitsUrl, "HDEL", REGISTER, id);
}, 60_000);

interface Fleet {
  readonly items: readonly { readonly name: string; readonly state: string; readonly requests: number }[];
  readonly total: { readonly requests: number };
}

test("a server that was killed is lost, apart from the others in name and figures, until it starts again", async () => {
  const [port = 0] = freePorts(1);
  const third = await start(port, "--free-limits", "60/1000");
  const name = `${hostname()}:${port}`;
  /** The command reads the register itself, which a server does every five seconds. */
  const registered = async () => {
    const { out } = await run("servers", "list", "--json");
    return JSON.parse(out.replace(/^warning: .*\n/, "")) as Fleet;
  };
  const stateIn = ({ items }: Fleet) => items.find((each) => each.name === name)?.state;
  await until(async () => stateIn(await registered()) === "up");
  process.kill(third.pid, "SIGKILL");
  // The register is made that of 20 seconds ago, so that the test need not wait for so long.
  const entry = (await sendToValkey(limitsUrl, "HVALS", REGISTER))
    .split(/,(?=\d+:\{)/)
    .find((each) => each.includes(`"port":${port},`));
  const [, at, text = ""] = /^(\d+):(.*)$/s.exec(entry ?? "") ?? [];
  await sendToValkey(limitsUrl, "HSET", REGISTER, JSON.parse(text).id, `${Number(at) - 20_000}:${text}`);
  expect(stateIn(await registered())).toBe("lost");
  await until(async () => stateIn(await get<Fleet>(first, "/api/servers")) === "lost");
  const { items, total } = await get<Fleet>(first, "/api/servers");
  expect(items.map(({ state }) => state)).toEqual(["up", "up", "lost"]);
  expect(new Set(items.map((each) => each.name)).size).toBe(3);
  expect(total.requests).toBe((items[0]?.requests ?? 0) + (items[1]?.requests ?? 0));
  expect(await problemsOn(first)).toHaveLength(2);
  // It sets the limits again when it restarts.
  const plans = JSON.parse((await run("plans", "list", "--json")).out);
  expect(plans[0].setBy).toEqual([{ server: hostname(), setting: "--free-limits" }]);
  expect((await get<{ items: object[] }>(first, "/api/plans")).items).toEqual(plans);
  const again = await start(port);
  await until(async () => stateIn(await registered()) === "up");
  expect((await registered()).items).toHaveLength(3);
  await again.stop();
  expect(stateIn(await registered())).toBeUndefined();
  // The others hear of it with their next heartbeat.
  for (const server of [first, second]) await until(async () => (await serversOn(server)).length === 2);
}, 60_000);

test("the overview has the requests of all servers, and the settings of one are found through Valkey", async () => {
  const overview = () => get<{ missing: []; totals: { requests: number } }>(first, "/api/overview");
  const before = (await overview()).totals.requests;
  for (let i = 0; i < 5; i++) await fetch(`${second.url}/pets`);
  await until(async () => (await overview()).totals.requests >= before + 5);
  await until(async () => (await overview()).missing.length === 0);
  const { out } = await run("settings");
  expect(out).toMatch(/^--port +\d{4,5} \(set to 0\) +flag$/m);
}, 60_000);

test("requests and admin-url find a server through Valkey, without its data directory", async () => {
  await fetch(`${first.url}/pets`, { headers: { "X-Request-Id": "over-the-register" } });
  const { out, err } = await run("requests", "--request-id", "over-the-register", "--json");
  expect([err, JSON.parse(out)]).toMatchObject(["", [{ requestId: "over-the-register" }]]);
  const { out: url } = await run("admin-url", "--operator", "bootstrap");
  const [, origin, code] = /^(\S+)\/\?code=(\w+)\n$/.exec(url) ?? [];
  expect([first.adminUrl, second.adminUrl]).toContain(origin ?? "");
  const signIn = { method: "POST", body: JSON.stringify({ code }) };
  const headers = { "Content-Type": "application/json" };
  expect((await fetch(`${origin}/api/session`, { ...signIn, headers })).status).toBe(200);
});

test("server-secret rotate: running servers ask one another with the new secret, and the audit trail has it", async () => {
  const { settings, close } = await openStores({ ...storageIn(""), databaseUrl });
  const before = await settings.readSecret();
  expect((await run("server-secret", "rotate")).out).toContain("have a new secret");
  const secret = await ServerSecret.open(settings);
  expect(await settings.readSecret()).not.toBe(before);
  await close();
  const statusOf = async ({ adminUrl }: PetstoreServer) => {
    const target = "/api/requests?scope=server";
    const request = { to: adminUrl, method: "GET", target, at: Date.now() };
    const headers = { Authorization: secret.authorizationOf(request) };
    return (await fetch(adminUrl + target, { headers })).status;
  };
  for (const server of [first, second]) await until(async () => (await statusOf(server)) === 200);
  await until(async () => (await problemsOn(second)).every((problem) => problem === null));
  const { items } = await get<{ items: object[] }>(first, "/api/audit?action=server-secret.rotated");
  expect(items).toMatchObject([{ actor: { kind: "command line" }, before: null, after: null }]);
}, 60_000);

test("a Valkey that has lost its data: servers go on listing one another, and the command says what it does not know", async () => {
  await until(async () => (await serversOn(first)).length === 2);
  const known = await serversOn(first);
  process.kill(second.pid, "SIGSTOP");
  try {
    await sendToValkey(limitsUrl, "FLUSHDB");
    const { out } = await run("servers", "list");
    expect(out).toMatch(
      /^warning: Valkey names (?:0 servers|1 server), and there were \d+ before; .* in 5 seconds$/m,
    );
    await until(async () => (await sendToValkey(limitsUrl, "HLEN", REGISTER)) === "1");
    expect(await serversOn(first)).toEqual(known);
  } finally {
    process.kill(second.pid, "SIGCONT");
  }
  await until(async () => (await serversOn(first)).length === 2);
}, 60_000);

test("of two servers one of which stands still, the other responds in time and names it", async () => {
  await until(async () => (await problemsOn(first)).length === 2);
  await fetch(`${first.url}/pets`, { headers: { "X-Request-Id": "beside-a-frozen-one" } });
  process.kill(second.pid, "SIGSTOP");
  try {
    const { out, err } = await run("requests", "--request-id", "beside-a-frozen-one", "--json");
    expect(err).toBe("");
    expect(out).toContain('"requestId": "beside-a-frozen-one"');
    expect(out).toContain(`: ${second.adminUrl} does not respond (timeout)`);
  } finally {
    process.kill(second.pid, "SIGCONT");
  }
}, 60_000);
