import type { AuditEntry } from "../../../src/domain/audit.ts";
import { COUNT } from "../../../src/store/postgres/quota-rows.ts";
import { afterAll, expect, test } from "bun:test";
import { createClock } from "../../../src/clock.ts";
import { type BanRules, DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import { type Ban, type Limits, newQuota, type OnBan } from "../../../src/domain/rate-limit.ts";
import { MemoryRateLimiter } from "../../../src/rate-limit/memory-rate-limiter.ts";
import { KeyAndAddressLimiter } from "../../../src/rate-limit/key-and-address-limiter.ts";
import { PostgresKeyLimiter } from "../../../src/store/postgres/key-limiter.ts";
import { Pools } from "../../../src/store/postgres/pools.ts";
import { Primary } from "../../../src/store/postgres/primary.ts";
import { rateLimiterConformance, STARTS_AT } from "../../conformance/rate-limiter.ts";
import { FREE } from "../../conformance/rate-limiter-fixture.ts";
import { restartable } from "../../rate-limit/open-memory.ts";
import { key } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";
import { startStallingProxy } from "../../../trials/harness/stalling-proxy.ts";
import { createMigrated } from "../store/postgres-database.ts";
import { promote, startPostgres, startStandby } from "../../../trials/harness/postgres.ts";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import { Unavailable } from "../../../src/api/errors.ts";
import { until } from "../../timing.ts";

const database = await createMigrated();
const { sql, url } = database;
afterAll(() => database[Symbol.asyncDispose]());

const SERVER = "server";

/** On a busy machine a query takes longer than the default. One that hangs fails before its test does, and says so. */
const PATIENT = { timeoutMs: 30_000 };

interface Settings {
  readonly clock?: TestClock;
  readonly ban?: BanRules;
  readonly onBan?: OnBan;
  readonly timeoutMs?: number;
}

/** A server's rate limiter with connections of its own. */
async function openServer(settings: Settings = {}) {
  const { clock: testClock, ban = DEFAULT_BAN, onBan, ...options } = settings;
  const pools = new Pools(await Primary.of(url), { ...PATIENT, ...options });
  const clock = testClock ?? createClock();
  const keys = new PostgresKeyLimiter(pools, {
    clock,
    ban: () => ban,
    onBan,
    server: SERVER,
    testClock,
  });
  const addresses = new MemoryRateLimiter({ clock, ban: () => ban });
  const limiter = new KeyAndAddressLimiter(keys, addresses);
  const close = limiter.close.bind(limiter);
  limiter.close = async () => {
    await close();
    await pools.close();
  };
  return limiter;
}

rateLimiterConformance("on PostgreSQL", async ({ ban, startsAt, onBan }) => {
  await sql`TRUNCATE quotas`;
  const clock = new TestClock(startsAt);
  return restartable(clock, () => openServer({ clock, ban, ...(onBan && { onBan }) }));
});

/** Bans a key with the first request over its limit. */
const AT_ONCE = { ...DEFAULT_BAN, strikes: 1, graceMs: 0 };

/** The stores of a server whose limiter bans at once, and the bans and audit entries that it reports. */
async function openBanning() {
  const bans: [number, Ban][] = [];
  const entries: AuditEntry[] = [];
  const stores = await openPostgres(url, { ...PATIENT, onAudit: (entry) => void entries.push(entry) });
  const onBan: OnBan = (...ban) => void bans.push(ban);
  const limiter = stores.openKeyLimiter({ clock: createClock(), ban: () => AT_ONCE, onBan, server: SERVER });
  const getBanned = (id: number) =>
    until(
      async () => (await limiter.decide(key(id), { perMinute: 1, perDay: 1 })).outcome === "banned",
      10_000,
    );
  const close = async () => {
    await limiter.close();
    await stores.close();
  };
  return { bans, entries, limiter, getBanned, audit: stores.audit, [Symbol.asyncDispose]: close };
}

test("a ban is in the audit trail when it is answered, and the server that decided it reports it once", async () => {
  await sql`TRUNCATE quotas, audit`;
  await using one = await openBanning();
  await using other = await openBanning();
  await one.getBanned(7);
  await other.getBanned(7);
  const [[keyId, { bannedAt, bannedUntil }] = [0, { bannedAt: 0, bannedUntil: 0 }], ...others] = one.bans;
  expect([keyId, others, other.bans]).toEqual([7, [], []]);
  const { items } = await one.audit.listAudit({ limit: 10, action: "key.banned" });
  expect(items).toEqual(one.entries);
  expect(items).toMatchObject([
    {
      at: bannedAt,
      actor: { kind: "server", name: SERVER },
      target: { kind: "key", id: 7n },
      after: { bannedUntil: new Date(bannedUntil).toISOString() },
    },
  ]);
});

test("a ban waits while the audit trail is locked, and other keys do not", async () => {
  await sql`TRUNCATE quotas`;
  await using server = await openBanning();
  const { promise: locked, resolve: onLocked } = Promise.withResolvers<void>();
  const paused = Promise.withResolvers<void>();
  const other = sql.begin(async (tx) => {
    await tx`INSERT INTO audit (at, actor, action) VALUES (1, 'server', 'restore')`;
    onLocked();
    await paused.promise;
  });
  await locked;
  let isBanned = false;
  const banned = server.getBanned(8).then(() => (isBanned = true));
  for (let id = 100; id < 120; id++)
    expect(await server.limiter.decide(key(id), FREE)).toMatchObject({ outcome: "allowed" });
  expect([isBanned, server.bans]).toEqual([false, []]);
  paused.resolve();
  await Promise.all([other, banned]);
  expect(server.bans).toHaveLength(1);
});

async function openServers(count: number) {
  await sql`TRUNCATE quotas`;
  const servers = await Promise.all(Array.from({ length: count }, () => openServer()));
  return {
    servers,
    [Symbol.asyncDispose]: async () => void (await Promise.all(servers.map((each) => each.close()))),
  };
}

test("each response has its own count", async () => {
  await using opened = await openServers(1);
  const [server] = opened.servers;
  const limits: Limits = { perMinute: 100, perDay: 100_000 };
  const decisions = await Promise.all(Array.from({ length: 60 }, async () => server?.decide(key(7), limits)));
  expect(decisions.map((each) => each?.remaining)).toEqual(Array.from({ length: 60 }, (_, i) => 99 - i));
});

test("a decision in open windows takes one round trip to PostgreSQL", async () => {
  await using proxy = await startStallingProxy(new URL(url));
  const pools = new Pools(await Primary.of(proxy.url), PATIENT);
  const limiter = new PostgresKeyLimiter(pools, {
    clock: createClock(),
    ban: () => DEFAULT_BAN,
    server: SERVER,
  });
  const decide = () => limiter.decide(key(1), FREE);
  // The first one connects, adds the row and prepares the statements.
  await decide();
  const roundTripMs = 50;
  proxy.delay(roundTripMs);
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const startedAt = performance.now();
    await decide();
    times.push(performance.now() - startedAt);
  }
  expect(Math.min(...times)).toBeWithin(roundTripMs - 5, 2 * roundTripMs - 5);
  proxy.delay(0);
  await limiter.close();
  await pools.close();
});

test("X-RateLimit-Reset is on the clock of the server, however wrong PostgreSQL's is", async () => {
  await sql`TRUNCATE quotas`;
  const clock = new TestClock(STARTS_AT);
  const pools = new Pools(await Primary.of(url), PATIENT);
  const limiter = new PostgresKeyLimiter(pools, { clock, ban: () => DEFAULT_BAN, server: SERVER });
  const { resetAt } = await limiter.decide(key(1), FREE);
  expect(resetAt).toBe(Math.ceil((STARTS_AT + 60_000) / 1000));
  const { minute } = (await limiter.quota(key(1))) ?? newQuota();
  expect(minute.used).toBe(1);
  // PostgreSQL's clock goes on, and the clock of the test does not.
  expect(minute.openedAt).toBeWithin(STARTS_AT - 10_000, STARTS_AT + 10_000);
  await limiter.close();
  await pools.close();
});

test("requests for a key that another server has locked wait, and are decided together", async () => {
  await using opened = await openServers(1);
  const [server] = opened.servers;
  await server?.decide(key(1), FREE);
  const { promise: locked, resolve: onLocked } = Promise.withResolvers<void>();
  const paused = Promise.withResolvers<void>();
  const other = sql.begin(async (tx) => {
    await tx`SELECT FROM quotas WHERE key_id = 1 FOR UPDATE`;
    onLocked();
    await paused.promise;
  });
  await locked;
  const waiting = Array.from({ length: 300 }, async (_, i) => server?.decide(key(1 + (i % 2)), FREE));
  expect(server?.queueLength).toBeGreaterThan(0);
  paused.resolve();
  await other;
  const outcomes = (await Promise.all(waiting)).map((each) => each?.outcome);
  expect(outcomes.filter((outcome) => outcome === "allowed")).toHaveLength(59 + 60);
});

test("a server that stands still between lock and commit loses the locks, and decides again", async () => {
  await sql`TRUNCATE quotas`;
  const pools = new Pools(await Primary.of(url), { timeoutMs: 4_000 });
  const real = createClock();
  let stallsMs = 1_500;
  const clock = {
    ...real,
    stepMs: 0,
    steadyNow() {
      // The locks of an idle transaction end after a quarter of the timeout.
      Bun.sleepSync(stallsMs);
      stallsMs = 0;
      return real.steadyNow();
    },
  };
  const limiter = new PostgresKeyLimiter(pools, { clock, ban: () => DEFAULT_BAN, server: SERVER });
  expect(await limiter.decide(key(1), FREE)).toMatchObject({ remaining: 59 });
  expect(await limiter.decide(key(1), FREE)).toMatchObject({ remaining: 58 });
  await limiter.close();
  await pools.close();
}, 60_000);

test("with 10,000 requests in the queue the next one is rejected, and those before it are decided", async () => {
  await using opened = await openServers(1);
  const [server] = opened.servers;
  const decisions = Array.from({ length: 10_000 }, async (_, id) => server?.decide(key(id % 1_000), FREE));
  await expect(Promise.resolve(server?.decide(key(1), FREE))).rejects.toThrow("the queue is full (10000)");
  expect((await Promise.all(decisions)).every((each) => each?.outcome === "allowed")).toBe(true);
});

test("rows of quotas that have expired are deleted, also while decisions need them", async () => {
  await sql`TRUNCATE quotas`;
  await sql`INSERT INTO quotas SELECT n, '{0,0,-1,0,0,0,-1,0,-1,-1}', 0 FROM generate_series(1, 2500) AS n`;
  const clock = new TestClock(STARTS_AT);
  const server = await openServer({ clock });
  for (let batch = 0; batch < 1_001; batch++) await server.decide(key(1), FREE);
  const count = async () => Number((await sql`SELECT count(*) AS count FROM quotas`)[0].count);
  await until(async () => (await count()) <= 1_500, 10_000);
  expect(await server.quota(key(1))).toMatchObject({ day: { used: 60 } });
  await server.close();
  // One in 100 batches has deleted 100 rows.
  expect(await count()).toBe(1_500);
});

test("counting reads few pages after thousands of updates under an open snapshot", async () => {
  await using opened = await openServers(1);
  const [server] = opened.servers;
  const decide = () => server?.decide(key(1), { perMinute: 1_000_000, perDay: 1_000_000 });
  await decide();
  const { promise: begun, resolve: onBegin } = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const snapshot = sql.begin("isolation level repeatable read", async (tx) => {
    await tx`SELECT count(*) FROM quotas`;
    onBegin();
    await done.promise;
  });
  await begun;
  await sql.unsafe(`DO $do$ BEGIN
    FOR i IN 1..4000 LOOP
      EXECUTE $count$${COUNT}$count$ USING text '1', text '1', text '1000000', text '1000000', NULL::int8;
      COMMIT;
    END LOOP;
  END $do$`);
  const explain = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${COUNT}`;
  const [plan] = await sql.begin(async (tx) => {
    // The connections of a server have this setting.
    await tx`SET LOCAL enable_seqscan = off`;
    const values = ["1", "1", "1000000", "1000000", null];
    return tx.unsafe<{ "QUERY PLAN": [{ Plan: { "Shared Hit Blocks": number } }] }[]>(explain, values);
  });
  // Without parts it reads about 70, and more with each update.
  expect(plan?.["QUERY PLAN"][0].Plan["Shared Hit Blocks"]).toBeWithin(1, 50);
  done.resolve();
  await snapshot;
  expect(await server?.quota(key(1))).toMatchObject({ minute: { used: 4_002 } });
});

/** A PostgreSQL server that is killed, and what comes back in its place. */
const FAULTS = {
  "a crash": async () => {
    const server = await startPostgres();
    return { before: server, after: server, comeBack: server.restart };
  },
  "a failover to the standby": async () => {
    const before = await startPostgres();
    const after = await startStandby(before);
    return { before, after, comeBack: () => promote(after) };
  },
};

test.each(Object.entries(FAULTS))(
  "after %s, bans that were answered stay, and at most a second of counting is lost",
  async (_, start) => {
    const { before, after, comeBack } = await start();
    const limits: Limits = { perMinute: 1, perDay: 1_000 };
    await using opened = new AsyncDisposableStack();
    opened.defer(after.stop);
    const open = async (at: string) => {
      const stores = await openPostgres(at, { schema: "production", ...PATIENT });
      opened.defer(stores.close);
      const ban = () => ({ ...DEFAULT_BAN, strikes: 1, graceMs: 0 });
      return stores.openKeyLimiter({ clock, ban, server: SERVER });
    };
    const clock = createClock();
    const limiter = await open(before.url);
    for (let i = 0; i < 30; i++) await limiter.decide(key(1), FREE);
    await Bun.sleep(1_000);
    let outcome = "";
    while (outcome !== "banned") ({ outcome } = await limiter.decide(key(2), limits));
    await before.kill();
    await expect(limiter.decide(key(1), FREE)).rejects.toBeInstanceOf(Unavailable);
    await comeBack();
    const again = await open(after.url);
    expect(await again.decide(key(2), limits)).toMatchObject({ outcome: "banned" });
    expect(await again.decide(key(1), FREE)).toMatchObject({ remaining: 29 });
  },
  60_000,
);

test("a server that lives through a crash hands over what it knows, and so do the others", async () => {
  // What was committed in these seconds is lost.
  const postgres = await startPostgres({ settings: { wal_writer_delay: "10s" } });
  await using opened = new AsyncDisposableStack();
  opened.defer(postgres.stop);
  const open = async () => {
    const stores = await openPostgres(postgres.url, { schema: "production", timeoutMs: 10_000 });
    opened.defer(stores.close);
    const limiter = stores.openKeyLimiter({ clock: createClock(), ban: () => AT_ONCE, server: SERVER });
    opened.defer(() => limiter.close());
    return limiter;
  };
  const [one, other] = [await open(), await open()];
  const limits: Limits = { perMinute: 60, perDay: 1_000 };
  await other.decide(key(1), limits);
  for (let i = 0; i < 40; i++) await one.decide(key(1), limits);
  await Promise.all([one, other].map((each) => each.decide(key(2), limits)));
  await postgres.kill();
  await postgres.restart();
  // Its client comes back to the server that knows least.
  const decide = async () => (await other.decide(key(1), limits)).outcome;
  await until(async () => (await decide().catch(() => "")) !== "", 20_000);
  const outcomes = [];
  for (let i = 0; i < 30; i++) outcomes.push(await decide());
  const allowed = outcomes.filter((outcome) => outcome === "allowed").length;
  // The first one, and those whose response was lost with a connection.
  expect(allowed).toBeWithin(0, 60 - 41);
}, 60_000);
