import { SQL } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { hostname } from "node:os";
import { createClock } from "../../../src/clock.ts";
import { NO_ACTIVITY } from "../../../src/domain/servers.ts";
import { adminFlags, type PetstoreServer, startPetstore } from "../../../trials/harness/petstore.ts";
import { freePorts } from "../../../trials/harness/server.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { bearer } from "../../bearer.ts";
import { cleanUp, InProcessCli } from "../../cli/cli.ts";
import { until } from "../../timing.ts";

/* Servers that share PostgreSQL and nothing else, each on a loopback address of its own, as on several machines. */

const databaseUrl = await postgresUrl();
const storage = ["--database-url", databaseUrl];
const sql = new SQL(databaseUrl, { max: 1, connection: { search_path: "production" } });
const TOKEN = "the-token-of-all-servers";
const SECRET = `whsec_${Buffer.alloc(32).toString("base64")}`;
const receiver = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
const webhook = ["--webhook-url", receiver.url.href];

const [token = ""] = adminFlags(TOKEN).slice(-1);
const start = (address: string, port = 0, more: readonly string[] = [], admin = `${address}:0`) => {
  const listeners = ["--port", `${port}`, "--host", address, "--admin-address", admin];
  return startPetstore(
    [...listeners, "--admin-token-file", token, ...storage, ...webhook, ...more],
    ["env", `PETSTORE_WEBHOOK_SECRET=${SECRET}`],
  );
};

interface Page {
  readonly items: readonly { readonly requestId: string }[];
  readonly servers: readonly { readonly id: string; readonly problem: string | null }[];
}

async function get<T>({ adminUrl }: Pick<PetstoreServer, "adminUrl">, path: string): Promise<T> {
  const response = await fetch(adminUrl + path, { headers: bearer(TOKEN) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

const serversOn = async (server: PetstoreServer) => (await get<ServerList>(server, "/api/servers")).items;
const isComplete = async (server: PetstoreServer) => {
  const { servers } = await get<Page>(server, "/api/requests");
  return servers.length === 2 && servers.every(({ problem }) => problem === null);
};

/** A command in a directory of its own, in which no server runs. */
const run = (...line: string[]) =>
  new InProcessCli().run([...line, ...storage], {}, { clock: createClock({ onStep: () => {} }) });

async function jsonOf(...line: string[]) {
  const { code, out, err } = await run(...line, "--json");
  if (code !== 0 || err !== "") throw new Error(`${line.join(" ")} exits with ${code}: ${err}\n${out}`);
  return JSON.parse(out);
}

let first: PetstoreServer;
let second: PetstoreServer;
beforeAll(async () => {
  first = await start("127.0.0.1");
  second = await start("127.0.0.2");
}, 60_000);
afterAll(async () => {
  await Promise.all([first.stop(), second.stop(), sql.close(), receiver.stop()]);
  await cleanUp();
});

interface ServerList {
  readonly items: readonly { readonly name: string; readonly state: string; readonly requests: number }[];
  readonly total: { readonly requests: number };
}

test("servers list names both, and what differs between them", async () => {
  const { items } = await jsonOf("servers", "list");
  const origins = [first, second].map(({ adminUrl }) => new URL(adminUrl).origin);
  expect(items).toMatchObject(
    origins.map((adminUrl) => ({ state: "up", adminUrl, differing: [{ name: "public-url" }] })),
  );
  for (const server of [first, second])
    await until(async () => (await serversOn(server)).length === 2, 5_000);
});

test("requests on one server are found on the other, and by a command", async () => {
  await until(async () => (await isComplete(first)) && (await isComplete(second)), 5_000);
  await fetch(`${second.url}/pets`, { headers: { "X-Request-Id": "on-the-second" } });
  const found = await get<Page>(first, "/api/requests?requestId=on-the-second");
  expect(found.items).toMatchObject([{ requestId: "on-the-second" }]);
  expect(await jsonOf("requests", "--request-id", "on-the-second")).toMatchObject([
    { requestId: "on-the-second" },
  ]);
});

test("the overview has the requests of all servers", async () => {
  const overview = () => get<{ missing: []; totals: { requests: number } }>(first, "/api/overview");
  const before = (await overview()).totals.requests;
  for (let i = 0; i < 5; i++) await fetch(`${second.url}/pets`);
  await until(async () => (await overview()).totals.requests >= before + 5, 5_000);
  expect((await overview()).missing).toEqual([]);
});

test("settings, webhook test and admin-url reach a server from a directory in which none runs", async () => {
  expect((await run("settings")).out).toMatch(/^--port +\d{4,5} \(set to 0\) +flag$/m);
  expect(await jsonOf("webhook", "test")).toMatchObject({ isDelivered: true });
  const { out: url } = await run("admin-url", "--operator", "bootstrap");
  const [, origin, code] = /^(\S+)\/\?code=(\w+)\n$/.exec(url) ?? [];
  expect(origin).toBe(second.adminUrl);
  const signIn = { method: "POST", body: JSON.stringify({ code }) };
  const headers = { "Content-Type": "application/json" };
  expect((await fetch(`${origin}/api/session`, { ...signIn, headers })).status).toBe(200);
});

test("a server without a listener for operators answers, too", async () => {
  const off = await start("127.0.0.3", 0, [], "off");
  await fetch(`${off.url}/pets`, { headers: { "X-Request-Id": "on-one-without" } });
  await until(async () => (await serversOn(first)).length === 3, 5_000);
  const found = await get<Page>(first, "/api/requests?requestId=on-one-without");
  expect([found.items.length, found.servers.map(({ problem }) => problem)]).toEqual([1, [null, null, null]]);
  await off.stop();
  await until(async () => (await serversOn(first)).length === 2, 5_000);
}, 60_000);

test("a server that was killed is lost within 5 seconds, until it starts again", async () => {
  const [port = 0] = freePorts(1);
  const third = await start("127.0.0.3", port);
  const name = `${hostname()}:${port}`;
  const registered = async (): Promise<ServerList> => jsonOf("servers", "list");
  const stateIn = ({ items }: ServerList) => items.find((each) => each.name === name)?.state;
  expect(stateIn(await registered())).toBe("up");
  process.kill(third.pid, "SIGKILL");
  await until(async () => stateIn(await registered()) === "lost", 5_000);
  await until(async () => stateIn(await get<ServerList>(first, "/api/servers")) === "lost", 5_000);
  const { out } = await run("servers", "list");
  expect(out.trimEnd().split("\n").at(-1)).toMatch(
    new RegExp(
      `^${name} was last heard of at .*Z, and did not stop in order. If it was taken away, it is listed for an hour\\.$`,
    ),
  );
  const { items, total } = await get<ServerList>(first, "/api/servers");
  expect(items.map(({ state }) => state)).toEqual(["up", "up", "lost"]);
  expect(total.requests).toBe((items[0]?.requests ?? 0) + (items[1]?.requests ?? 0));
  expect(await isComplete(first)).toBeTrue();
  const again = await start("127.0.0.3", port);
  expect((await registered()).items.map(({ state }) => state)).toEqual(["up", "up", "up"]);
  await again.stop();
  expect(stateIn(await registered())).toBeUndefined();
  for (const server of [first, second])
    await until(async () => (await serversOn(server)).length === 2, 5_000);
}, 60_000);

test("of two servers one of which stands still, the other answers in time and names it", async () => {
  await until(() => isComplete(first), 10_000);
  await fetch(`${first.url}/pets`, { headers: { "X-Request-Id": "beside-a-frozen-one" } });
  process.kill(second.pid, "SIGSTOP");
  try {
    // It stays in the list, however slow the machine is.
    const list = () => sql`UPDATE servers SET reported_at = reported_at + 3000
      WHERE report LIKE '%127.0.0.2%' AND reported_at < extract(epoch FROM now()) * 1000`;
    await list();
    const { out, err } = await run("requests", "--request-id", "beside-a-frozen-one", "--json");
    expect(err).toBe("");
    expect(out).toContain('"requestId": "beside-a-frozen-one"');
    expect(out).toMatch(/^warning: without the requests of \S+: it does not answer$/m);
  } finally {
    process.kill(second.pid, "SIGCONT");
  }
}, 60_000);

test("a row that somebody has written is listed, asked in vain, and no server connects to its URL", async () => {
  const asked: string[] = [];
  using trap = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      asked.push(url);
      return Response.json({ items: [], nextCursor: null, servers: [] });
    },
  });
  const identity = { ...NO_ACTIVITY, id: "forged", name: hostname(), version: "1.2.0", startedAt: 0 };
  const report = JSON.stringify({ ...identity, adminUrl: trap.url.origin });
  const problem = async () => {
    await sql`INSERT INTO servers VALUES ('forged', ${report}, extract(epoch FROM now()) * 1000 + 3500)
      ON CONFLICT (id) DO UPDATE SET reported_at = excluded.reported_at`;
    const { servers } = await get<Page>(first, "/api/requests");
    return servers.find(({ id }) => id === "forged")?.problem;
  };
  await until(async () => (await problem()) !== undefined, 5_000);
  expect(await problem()).toBe("it does not answer");
  expect((await run("admin-url", "--operator", "bootstrap")).out).toStartWith(second.adminUrl);
  expect(asked).toEqual([]);
  await sql`DELETE FROM servers WHERE id = 'forged'`;
}, 60_000);

/** Questions that somebody has written, with the code of the answer. Only operations that servers answer are done. */
const FORGED = [
  { operation: "createKey", query: "name=forged&plan=enterprise", code: "not_found" },
  { operation: "createSignInCode", query: "operator=bootstrap", code: "not_found" },
  { operation: "constructor", query: "", code: "not_found" },
  { operation: "listRequests", query: "limit=all", code: "invalid_parameter" },
];

test("questions that somebody has written change nothing, and one that is too long is not read", async () => {
  const ask = (id: string, operation: string, query: string) =>
    sql`INSERT INTO server_questions (id, operation, query, asked_at)
      VALUES (${id}, ${operation}, ${query}, extract(epoch FROM clock_timestamp()) * 1000)`;
  const counts = async () =>
    (
      await sql`SELECT (SELECT count(*) FROM api_keys)::int AS keys,
    (SELECT count(*) FROM audit)::int AS entries, (SELECT count(*) FROM sign_in_codes)::int AS codes`
    )[0];
  const before = await counts();
  await ask("too long", "listRequests", `requestId=${"x".repeat(16_384)}`);
  for (const { operation, query } of FORGED) await ask(operation, operation, query);
  const answers = () => sql`SELECT id, answer FROM server_questions WHERE answer IS NOT NULL`;
  await until(async () => (await answers()).length === FORGED.length, 5_000);
  const codes = (await answers()).map(({ id, answer }: { id: string; answer: string }) => [
    id,
    JSON.parse(answer).error.code,
  ]);
  expect(Object.fromEntries(codes)).toEqual(
    Object.fromEntries(FORGED.map(({ operation, code }) => [operation, code])),
  );
  expect(await sql`SELECT taken_by FROM server_questions WHERE id = 'too long'`).toEqual([
    { taken_by: null },
  ]);
  expect(await counts()).toEqual(before);
  await sql`DELETE FROM server_questions`;
}, 60_000);

test("whoever asks and is killed leaves nothing, and the tables are not in the write-ahead log", async () => {
  await sql`INSERT INTO server_questions (id, server, operation, query, asked_at)
    VALUES ('old', 'nobody', 'getServer', '', extract(epoch FROM now()) * 1000 - 30001)`;
  await until(async () => (await sql`SELECT FROM server_questions`).length === 0, 5_000);
  const [{ persistence }] = await sql`SELECT string_agg(relpersistence::text, '') AS persistence
    FROM pg_class WHERE relname IN ('servers', 'server_questions')`;
  expect(persistence).toBe("uu");
});
