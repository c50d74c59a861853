import { SQL } from "bun";
import { afterAll, expect, test } from "bun:test";
import { hostname } from "node:os";
import { checkHistory } from "../../../trials/faults/history.ts";
import { rateLimitStatus, type RateLimitStatus, sendBurst } from "../../../trials/harness/api-client.ts";
import { storePolicy } from "../../../trials/harness/policy.ts";
import { Fleet } from "../../../trials/harness/fleet.ts";
import { adminFlags, isOfOutage, type LogLine } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { openStores } from "../../../src/adapters/open-stores.ts";
import { bearer } from "../../bearer.ts";
import { dataIn } from "../../data-directory.ts";
import type { NewKey } from "../../../src/domain/api-keys.ts";
import { generateSecret, toNewSecret } from "../../../src/domain/secrets.ts";
import { POSTGRES_MIGRATIONS } from "../../../src/store/sql/migration-steps.ts";
import { BY } from "../../key-store-arguments.ts";
import { until } from "../../timing.ts";

const TOKEN = "the-token-of-all-servers";

const databaseUrl = await postgresUrl();
const storage = ["--database-url", databaseUrl];
/** A ban takes four seconds. */
await storePolicy(storage, { ban: { strikes: 3 } });
const fleet = await Fleet.start({ size: 4, storage, flags: adminFlags(TOKEN) });
const stores = await openStores(dataIn("", databaseUrl));
afterAll(async () => {
  await stores.close();
  await fleet.stop();
});

async function newKey(key: Partial<NewKey> = {}): Promise<{ id: number; key: string }> {
  const secret = generateSecret("production");
  const draft = { name: "test", plan: "free", createdAt: Date.now(), ...key } as const;
  const { id } = await stores.keys.createKey(draft, toNewSecret(secret), BY);
  return { id, key: secret };
}

const SMALL = { plan: "enterprise", limits: { perMinute: 2, perDay: 9 } } as const;

/** Continues to send requests after a 429. */
async function getBanned(url: string, key: string): Promise<void> {
  while ((await rateLimitStatus(url, key)).code !== "key_banned");
}

/** Resolves when every server has reached the status. */
async function everyServer(key: string, isExpected: (status: RateLimitStatus) => boolean): Promise<void> {
  await Promise.all(
    fleet.urls.map((url) => until(async () => isExpected(await rateLimitStatus(url, key)), 1_000)),
  );
}

/** What the listener for operators of each server responds, or of the first ones. */
function fromEach(path: string, servers = fleet.servers.length): Promise<unknown[]> {
  const headers = bearer(TOKEN);
  const from = async (url: string) => (await fetch(url + path, { headers })).json();
  return Promise.all(fleet.servers.slice(0, servers).map(({ adminUrl }) => from(adminUrl)));
}

/** Whether each server has heard of the four, and of where they are asked. */
async function knowEachOther(): Promise<boolean> {
  const fleets = (await fromEach("/api/servers")) as { items: { adminUrl: string | null }[] }[];
  return fleets.every((each) => each.items.filter(({ adminUrl }) => adminUrl !== null).length === 4);
}

interface RequestList {
  readonly items: readonly { readonly requestId: string; readonly server: string }[];
  readonly nextCursor: string | null;
  readonly servers: readonly { readonly name: string; readonly problem: string | null }[];
}

const warnings = (log: readonly LogLine[]) =>
  log.filter((line) => line.level !== "info" && !isOfOutage(line)).map(({ event }) => event);

test("four servers that start at the same time on an empty database all serve, migrate it once and create one key", async () => {
  const [key, ...others] = fleet.servers.flatMap(({ key }) => key ?? []);
  expect([key, others]).toEqual([expect.stringMatching(/^pet_live_/), []]);
  const statuses = await Promise.all(fleet.urls.map((url) => rateLimitStatus(url, key ?? "")));
  expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(statuses.map(({ remaining }) => remaining).toSorted()).toEqual([56, 57, 58, 59]);
  expect(fleet.logs.flatMap(warnings)).toEqual([]);
  await using sql = new SQL(databaseUrl, { max: 1 });
  const steps = await sql`SELECT version::int FROM production.schema_migrations ORDER BY version`;
  expect(steps.map(({ version }: { version: number }) => version)).toEqual(
    POSTGRES_MIGRATIONS.map(({ version }) => version),
  );
});

test("each server lists all four, with their figures together", async () => {
  const items = fleet.servers.map(({ adminUrl }) => expect.objectContaining({ adminUrl }));
  const expected = { items: expect.arrayContaining(items), total: { serverErrors: 0 } };
  await until(knowEachOther, 10_000);
  for (const each of await fromEach("/api/servers")) expect(each).toMatchObject(expected);
}, 60_000);

test("of 400 concurrent requests on a Free key exactly 60 are allowed", async () => {
  const { key } = await newKey();
  const responses = await sendBurst(fleet.ports, key, 400);
  expect(responses.filter(({ status }) => status === 429)).toHaveLength(340);
  const allowed = responses.filter(({ status }) => status === 200);
  const remaining = allowed.map(({ headers }) => Number(headers["x-ratelimit-remaining"]));
  expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));
});

test("a ban by one server applies on all; keys show and keys unban work on what PostgreSQL stores", async () => {
  const { id, key } = await newKey(SMALL);
  await getBanned(fleet.urls[0] ?? "", key);
  for (const url of fleet.urls) {
    const { code, remaining, retryAfter } = await rateLimitStatus(url, key);
    expect({ code, remaining }).toEqual({ code: "key_banned", remaining: 0 });
    expect(retryAfter).toBeWithin(200, 301);
  }
  const { bannedUntil, usage } = await fleet.keys("show", `${id}`);
  expect(Date.parse(String(bannedUntil))).toBeWithin(Date.now() + 200_000, Date.now() + 301_000);
  expect(usage).toMatchObject({ minute: { used: 2, limit: 2 }, day: { used: 2, limit: 9 } });
  const isListed = (each: unknown) => JSON.stringify(each).includes(`"id":${id},`);
  await until(async () => (await fromEach("/api/bans")).every(isListed), 5_000);
  // On a busy machine the requests of another test may have led to a ban, too.
  const countsIt = (each: unknown) => Object(each).bannedKeys >= 1;
  await until(async () => (await fromEach("/api/overview")).every(countsIt), 5_000);
  await fleet.keys("unban", `${id}`);
  await everyServer(key, ({ code }) => code === "rate_limited");
  await until(async () => !(await fromEach("/api/bans")).some(isListed), 5_000);
});

test("a change of plan, a new secret and a revocation reach all servers, and usage is unchanged", async () => {
  const { id, key } = await newKey();
  await everyServer(key, ({ status }) => status === 200);
  await stores.keys.updateKey(id, { plan: "pro" }, BY);
  await everyServer(key, ({ limit }) => limit === 300);
  const { remaining } = await rateLimitStatus(fleet.urls[0] ?? "", key);
  expect(await fleet.keys("show", `${id}`)).toMatchObject({ usage: { minute: { used: 300 - remaining } } });

  const secret = generateSecret("production");
  await stores.keys.addSecret(id, { ...toNewSecret(secret), overlapEndsAt: Date.now() }, BY);
  for (const url of fleet.urls) expect((await rateLimitStatus(url, secret)).status).toBe(200);
  await everyServer(key, ({ code }) => code === "invalid_api_key");
  await stores.keys.updateKey(id, { revokedAt: Date.now() }, BY);
  await everyServer(secret, ({ code }) => code === "invalid_api_key");
});

test("each server lists the requests of all four in pages, and names one that was killed", async () => {
  await until(knowEachOther, 10_000);
  const { id, key } = await newKey({ plan: "business" });
  const headers = bearer(key);
  for (let i = 0; i < 12; i++) {
    const url = `${fleet.urls[i % 4]}/pets`;
    expect((await fetch(url, { headers: { ...headers, "X-Request-Id": `id-${i}` } })).status).toBe(200);
  }
  const newestFirst = Array.from({ length: 12 }, (_, i) => `id-${11 - i}`);
  const list = (query = "", servers?: number) =>
    fromEach(`/api/requests?keyId=${id}${query}`, servers) as Promise<RequestList[]>;
  const idsOf = (items: RequestList["items"] = []) => items.map(({ requestId }) => requestId);
  for (const { items, servers } of await list()) {
    expect(idsOf(items)).toEqual(newestFirst);
    expect(new Set(items.map(({ server }) => server)).size).toBe(4);
    expect(servers.map(({ problem }) => problem)).toEqual([null, null, null, null]);
  }
  const [first] = await list("&limit=5", 1);
  const [next] = await list(`&limit=7&cursor=${first?.nextCursor}`, 1);
  expect([...idsOf(first?.items), ...idsOf(next?.items)]).toEqual(newestFirst);
  expect(next?.nextCursor).toBeNull();

  await fleet.stopServer(3, "SIGKILL");
  const [rest] = await list("", 1);
  expect(rest?.items).toHaveLength(9);
  expect(rest?.servers.filter(({ problem }) => problem !== null)).toMatchObject([
    {
      name: `${hostname()}:${new URL(fleet.urls[3] ?? "").port}`,
      problem: "it does not answer",
    },
  ]);
  await fleet.startServer(3);
}, 60_000);

test("a ban that four servers run into has one audit entry and one event, by the server that decided it", async () => {
  const { id, key } = await newKey(SMALL);
  await Promise.all(fleet.urls.map((url) => getBanned(url, key)));
  // Servers record what they know before they end.
  await fleet.stop();
  const target = { kind: "key", id: BigInt(id) } as const;
  const { items } = await stores.audit.listAudit({ action: "key.banned", target, limit: 10 });
  expect(items).toMatchObject([{ actor: { kind: "server" }, target }]);
  const isOfKey = (text: string) => JSON.parse(text).keyId === id;
  const events = fleet.logs.flat().filter(({ event, text }) => event === "key.banned" && isOfKey(text));
  expect(events).toHaveLength(1);
});

test("servers share the limits, also when one of them is killed and started again", async () => {
  const two = await Fleet.start({ size: 2, storage });
  for (const log of two.logs) expect(warnings(log)).toEqual([]);
  const isAllowed = ({ status }: { status: number }) => status === 200;
  const all = await newKey();
  expect((await sendBurst(two.ports, all.key, 200)).filter(isAllowed)).toHaveLength(60);

  const { key } = await newKey();
  const [first = 0, second = 0] = two.ports;
  expect((await sendBurst([second], key, 20)).filter(isAllowed)).toHaveLength(20);
  const [during] = await Promise.all([sendBurst([first], key, 20), two.stopServer(1, "SIGKILL")]);
  await two.startServer(1);
  const after = await sendBurst(two.ports, key, 100);
  expect([during, after].map((responses) => responses.filter(isAllowed).length)).toEqual([20, 20]);
  await two.stop();
});

test("a history of requests over three servers whose connections to PostgreSQL are killed: reads are never stale", async () => {
  const { kills, kinds, problems } = await checkHistory({ requests: 1_500, seed: 1 });
  expect(problems).toEqual([]);
  expect(kills).toBeGreaterThan(0);
  const expected = ["304", "conditional", "create", "get", "list", "order", "update"];
  expect(Object.keys(kinds).toSorted()).toEqual(expected);
}, 120_000);
