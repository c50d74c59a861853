import type { SQL } from "bun";
import { afterAll, expect, test } from "bun:test";
import { createClock } from "../../../src/clock.ts";
import type { AuditEntry } from "../../../src/domain/audit.ts";
import { DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import type { Clock } from "../../../src/domain/ports/clock.ts";
import type { Ban, Limits } from "../../../src/domain/rate-limit.ts";
import { PostgresKeyLimiter } from "../../../src/store/postgres/key-limiter.ts";
import { Pools } from "../../../src/store/postgres/pools.ts";
import { Primary } from "../../../src/store/postgres/primary.ts";
import { key } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";
import { until } from "../../timing.ts";
import { startStallingProxy } from "../../../trials/harness/stalling-proxy.ts";
import { createMigrated } from "../store/postgres-database.ts";

const database = await createMigrated();
const { sql, url } = database;
afterAll(() => database[Symbol.asyncDispose]());

const LIMITS: Limits = { perMinute: 1, perDay: 1_000 };
const FREE: Limits = { perMinute: 60, perDay: 1_000 };
/** Servers that lost their connections wait for each other for this time. */
const HAND_OVER_MS = 500;

/** A server with connections of its own, which bans a key with the first request over its limit. */
async function openServer({ at = url, clock }: { at?: string; clock?: Clock } = {}) {
  const pools = new Pools(await Primary.of(at), { timeoutMs: 30_000 });
  const bans: Ban[] = [];
  const entries: AuditEntry[] = [];
  const options = {
    clock: clock ?? createClock(),
    testClock: clock,
    ban: () => ({ ...DEFAULT_BAN, strikes: 1, graceMs: 0 }),
    onBan: (_: number, ban: Ban) => void bans.push(ban),
    server: "server",
  };
  const limiter = new PostgresKeyLimiter(pools, options, (entry) => void entries.push(entry));
  const outcome = async (id: number, limits = LIMITS) => (await limiter.decide(key(id), limits)).outcome;
  return {
    pools,
    limiter,
    bans,
    entries,
    outcome,
    untilBanned: (id: number) => until(async () => (await outcome(id)) === "banned", 10_000),
    async [Symbol.asyncDispose]() {
      await limiter.close();
      await pools.close();
    },
  };
}

const empty = () => sql`TRUNCATE quotas, audit`;
const bansInTrail = () => sql<{ at: bigint }[]>`SELECT at FROM audit WHERE action = 'key.banned'`;

test("connections that are lost during a hand-over lead to another one before the next decision", async () => {
  await empty();
  await using server = await openServer();
  for (let i = 0; i < 10; i++) await server.outcome(1, FREE);
  const lose = async () => {
    await sql`UPDATE quotas SET numbers[2] = 1, numbers[6] = 1`;
    server.pools.limits.replaceConnections();
  };
  await lose();
  const decided = server.limiter.decide(key(1), FREE);
  // The count is back, and the server waits for others.
  await until(async () => (await sql`SELECT FROM quotas WHERE numbers[2] = 10`).length > 0, 10_000);
  await lose();
  expect(await decided).toMatchObject({ remaining: 60 - 11 });
});

test("a server that decides nothing notices each loss of its connections", async () => {
  await empty();
  await using server = await openServer();
  await server.untilBanned(1);
  server.pools.limits.replaceConnections();
  const others = sql`FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  await until(
    async () => (await sql`SELECT ${others} AND query LIKE '%FROM unnest%' AND state = 'idle'`).length > 0,
    10_000,
  );
  await Bun.sleep(HAND_OVER_MS);
  await sql`DELETE FROM quotas`;
  await sql`SELECT pg_terminate_backend(pid) ${others} AND application_name LIKE 'petstore %'`;
  await until(async () => (await sql`SELECT FROM quotas WHERE key_id = 1`).length > 0, 10_000);
});

test("a server that knows no key waits for those that do", async () => {
  await empty();
  await using one = await openServer();
  await using other = await openServer();
  await one.untilBanned(1);
  await sql`DELETE FROM quotas`;
  for (const { pools } of [one, other]) pools.limits.replaceConnections();
  const startedAt = performance.now();
  expect(await Promise.all([other.outcome(1), one.outcome(1)])).toEqual(["banned", "banned"]);
  expect(performance.now() - startedAt).toBeGreaterThan(HAND_OVER_MS - 1);
});

test("a ban that was lost is handed over with its audit entry, and one that stayed is not recorded again", async () => {
  await empty();
  await using one = await openServer();
  await using other = await openServer();
  for (const { untilBanned } of [one, other]) await untilBanned(1);
  const before = await bansInTrail();
  const handOver = async () => {
    for (const { pools } of [one, other]) pools.limits.replaceConnections();
    await Promise.all([one, other].map(({ outcome }) => outcome(1)));
  };
  await handOver();
  expect(await bansInTrail()).toEqual(before);
  await empty();
  await handOver();
  expect(await bansInTrail()).toHaveLength(1);
  expect([...one.entries, ...other.entries].map(({ action }) => action)).toEqual([
    "key.banned",
    "key.banned",
  ]);
  expect([one.bans.length, other.bans.length].toSorted()).toEqual([0, 1]);
});

test("a ban that was lost is handed over while the audit trail is locked", async () => {
  await empty();
  await using server = await openServer();
  await server.untilBanned(1);
  await empty();
  const { promise: locked, resolve: onLocked } = Promise.withResolvers<void>();
  const paused = Promise.withResolvers<void>();
  const other = sql.begin(async (tx) => {
    await tx`INSERT INTO audit (at, actor, action) VALUES (1, 'server', 'restore')`;
    onLocked();
    await paused.promise;
  });
  await locked;
  server.pools.limits.replaceConnections();
  expect(await server.outcome(1)).toBe("banned");
  paused.resolve();
  await other;
});

test("a lifted ban is not handed over, although a decision from before ends after the unban has begun", async () => {
  await empty();
  await using proxy = await startStallingProxy(new URL(url));
  await using server = await openServer({ at: proxy.url });
  await server.untilBanned(1);
  // It connects.
  await server.limiter.unban(key(2), 0);
  proxy.delay(400);
  const decided = server.outcome(1);
  await Bun.sleep(200);
  const unbanned = server.limiter.unban(key(1), 0);
  expect(await decided).toBe("banned");
  await unbanned;
  proxy.delay(0);
  server.pools.limits.replaceConnections();
  expect(await server.outcome(1, FREE)).toBe("allowed");
});

/** Counts the writes that wait for the disk. */
function countSyncs({ writes }: Pools): () => number {
  let syncs = 0;
  const query = writes.query.bind(writes);
  writes.query = <T>(work: (connection: SQL) => Promise<T>) => {
    syncs++;
    return query(work);
  };
  return () => syncs;
}

test("a ban is settled by a write after its commit, not by one after its decision", async () => {
  await empty();
  const clock = new TestClock();
  await using server = await openServer({ clock });
  const syncs = countSyncs(server.pools);
  const bannedAt = clock.time;
  for (const outcome of ["allowed", "limited", "banned", "banned"] as const) {
    clock.advance(1);
    expect(await server.outcome(1)).toBe(outcome);
  }
  expect(syncs()).toBe(1);
  // Another server decided this one before that, and commits it now.
  await sql`INSERT INTO quotas (key_id, numbers, expires_at)
    VALUES (2, ${`{0,0,-1,0,0,0,-1,0,${bannedAt},${bannedAt + 60_000}}`}, ${bannedAt + 86_400_000})`;
  expect([await server.outcome(2), await server.outcome(2), syncs()]).toEqual(["banned", "banned", 2]);
});

test("expired quotas are deleted although no window is open when its key's request comes", async () => {
  await empty();
  await sql`INSERT INTO quotas SELECT n, '{0,0,-1,0,0,0,-1,0,-1,-1}', 0 FROM generate_series(1000, 1099) AS n`;
  const clock = new TestClock();
  await using server = await openServer({ clock });
  for (let batch = 0; batch < 100; batch++) {
    await server.outcome(1, FREE);
    clock.advance(60_000);
  }
  await until(async () => (await sql`SELECT FROM quotas WHERE key_id >= 1000`).length === 0, 10_000);
});
