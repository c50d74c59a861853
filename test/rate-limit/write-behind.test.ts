import { describe, expect, test } from "bun:test";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import type { Limits, Subject } from "../../src/domain/rate-limit.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory-rate-limiter.ts";
import { address, key, keys } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";
import { MapQuotaStore } from "./map-quota-store.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };
const NEVER_MS = 3_600_000;

function setUp({ flushEveryMs = 1, maxAddresses = 100_000 } = {}) {
  const clock = new TestClock(1_800_000_000_000);
  const quotaStore = new MapQuotaStore();
  const errors: unknown[] = [];
  const onQuotaStoreError = (error: unknown) => void errors.push(error);
  const recoveries: number[] = [];
  const rateLimiter = new MemoryRateLimiter({
    clock,
    ban: () => DEFAULT_BAN,
    quotaStore,
    flushEveryMs,
    maxAddresses,
    onQuotaStoreError,
    onQuotaStoreRecovery: () => recoveries.push(errors.length),
  });
  return { clock, quotaStore, errors, recoveries, rateLimiter };
}

const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

function decideAll(rateLimiter: MemoryRateLimiter, subjects: Subject[]): void {
  for (const subject of subjects) rateLimiter.decide(subject, LIMITS);
}

function earnBan(rateLimiter: MemoryRateLimiter, clock: { time: number }, subject: Subject): void {
  while (rateLimiter.decide(subject, LIMITS).outcome === "allowed");
  while (rateLimiter.decide(subject, LIMITS).outcome === "limited") clock.time += 1_001;
}

describe("write-behind", () => {
  test("counts are in the store after the next pass, and are written again only when they change", async () => {
    const { rateLimiter, quotaStore } = setUp();
    decideAll(rateLimiter, [key(1), key(1), address("1")]);
    await quotaStore.until(() => quotaStore.size === 2);
    expect(quotaStore.saves).toEqual([2]);
    expect(quotaStore.find(key(1))).toEqual(rateLimiter.quota(key(1)));
    const saves = quotaStore.saves.length;
    rateLimiter.decide(key(1), LIMITS);
    await quotaStore.until(() => quotaStore.saves.length > saves);
    expect(quotaStore.saves.at(-1)).toBe(1);
    expect(quotaStore.find(key(1))?.day.used).toBe(3);
    await rateLimiter.close();
  });

  test("a pass writes batches of 256 rows, each in a time slice of its own", async () => {
    const { rateLimiter, quotaStore } = setUp();
    decideAll(rateLimiter, keys(1_000));
    let turns = 0;
    const countTurns = () => void (turns++, quotaStore.size < 1_000 && setImmediate(countTurns));
    await quotaStore.until(() => quotaStore.saves.length === 1);
    countTurns();
    await quotaStore.until(() => quotaStore.size === 1_000);
    expect(quotaStore.saves).toEqual([256, 256, 256, 232]);
    expect(turns).toBeGreaterThanOrEqual(3);
    await rateLimiter.close();
  });

  test("a pass takes at most 64 time slices: with more rows to write, the batches grow", async () => {
    const { rateLimiter, quotaStore } = setUp();
    decideAll(rateLimiter, keys(32_000));
    await quotaStore.until(() => quotaStore.size === 32_000);
    decideAll(rateLimiter, keys(300));
    await quotaStore.until(() => quotaStore.saves.length === 66);
    expect(quotaStore.saves).toEqual([...Array.from({ length: 64 }, () => 500), 256, 44]);
    await rateLimiter.close();
  });

  test("many bans at once are written in batches of 256 rows", async () => {
    const { rateLimiter, quotaStore, clock } = setUp({ flushEveryMs: NEVER_MS });
    const limits = { perMinute: 1, perDay: 1 };
    for (const subject of keys(600)) rateLimiter.decide(subject, limits);
    for (let requests = 0; requests < 11; requests++, clock.time += 1_001)
      for (const subject of keys(600)) rateLimiter.decide(subject, limits);
    await quotaStore.until(() => quotaStore.size === 600);
    expect(quotaStore.saves).toEqual([256, 256, 88]);
  });
});

describe("close", () => {
  test("does nothing the second time, and nothing is written after the first", async () => {
    const { rateLimiter, quotaStore, clock, errors } = setUp();
    await rateLimiter.close();
    await rateLimiter.close();
    earnBan(rateLimiter, clock, key(1));
    await nextIteration();
    expect([quotaStore.saves, errors, quotaStore.isClosed]).toEqual([[], [], true]);
  });

  test("fails with the cause when the store does not take the counts", async () => {
    const { rateLimiter, quotaStore } = setUp({ flushEveryMs: NEVER_MS });
    decideAll(rateLimiter, [key(1)]);
    quotaStore.error = new Error("disk full");
    const error = await rateLimiter.close().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(Error);
    expect(error).toHaveProperty("cause", quotaStore.error);
  });
});

describe("a store that fails", () => {
  test("no request fails, each beginning and end is reported once, and everything is written after it", async () => {
    const { rateLimiter, quotaStore, errors, recoveries } = setUp();
    for (const message of ["disk full", "busy"]) {
      quotaStore.error = new Error(message);
      decideAll(rateLimiter, keys(600));
      const { length } = quotaStore.saves;
      await quotaStore.until(() => quotaStore.saves.length >= length + 5);
      expect(rateLimiter.decide(key(0), LIMITS)).toMatchObject({ outcome: "allowed" });
      quotaStore.error = undefined;
      await quotaStore.until(() => quotaStore.find(key(0))?.day.used === rateLimiter.quota(key(0))?.day.used);
    }
    await quotaStore.until(() =>
      quotaStore.rows.every(([subject, { day }]) => day.used === (subject.id === 0 ? 4 : 2)),
    );
    expect(quotaStore.size).toBe(600);
    expect(errors).toEqual([new Error("disk full"), new Error("busy")]);
    expect(recoveries).toEqual([1, 2]);
    await rateLimiter.close();
  });
});

test("an unban that could not be stored is stored after the failure", async () => {
  const { rateLimiter, quotaStore, clock } = setUp();
  earnBan(rateLimiter, clock, key(1));
  await quotaStore.until(() => quotaStore.find(key(1))?.bannedAt === rateLimiter.quota(key(1))?.bannedAt);
  const { length } = quotaStore.saves;
  await quotaStore.until(() => quotaStore.saves.length > length);
  quotaStore.error = new Error("disk full");
  rateLimiter.unban(key(1), 0);
  const { length: stored } = quotaStore.saves;
  await quotaStore.until(() => quotaStore.saves.length > stored);
  quotaStore.error = undefined;
  await quotaStore.until(() => quotaStore.find(key(1))?.bannedAt === -1);
  await rateLimiter.close();
});

test("addresses that were evicted while the store failed are not kept to be written", async () => {
  const { rateLimiter, quotaStore } = setUp({ maxAddresses: 300 });
  quotaStore.error = new Error("disk full");
  decideAll(
    rateLimiter,
    Array.from({ length: 1_000 }, (_, i) => address(`${i}`)),
  );
  const { length } = quotaStore.saves;
  await quotaStore.until(() => quotaStore.saves.length > length);
  quotaStore.error = undefined;
  const { length: failed } = quotaStore.saves;
  await quotaStore.until(() => quotaStore.saves.length === failed + 3);
  // Batches of 256: the 700 that were evicted may have rows, and 300 are there.
  expect(quotaStore.saves.slice(failed)).toEqual([512, 300, 188]);
  expect(quotaStore.size).toBe(300);
  await rateLimiter.close();
});

describe("expired subjects", () => {
  test("are removed from memory and from the store", async () => {
    const { rateLimiter, quotaStore, clock } = setUp();
    decideAll(rateLimiter, [...keys(5_000), address("1")]);
    await quotaStore.until(() => quotaStore.size === 5_001);
    clock.time += 86_399_999;
    rateLimiter.decide(key(1), LIMITS);
    clock.time += 1;
    await quotaStore.until(() => quotaStore.size === 1);
    expect(quotaStore.rows.map(([subject]) => subject)).toEqual([key(1)]);
    await rateLimiter.close();
  });

  test("rows that expired before a start are deleted after it", async () => {
    const before = setUp();
    decideAll(before.rateLimiter, keys(300));
    await before.rateLimiter.close();
    const { quotaStore } = before;
    const clock = new TestClock(before.clock.time + 86_400_000);
    const rateLimiter = new MemoryRateLimiter({
      clock,
      ban: () => DEFAULT_BAN,
      quotaStore,
      flushEveryMs: 1,
    });
    await quotaStore.until(() => quotaStore.size === 0);
    await rateLimiter.close();
  });

  test("a key that returns before its row is deleted keeps the row", async () => {
    const { rateLimiter, quotaStore, clock } = setUp();
    decideAll(rateLimiter, keys(600));
    await quotaStore.until(() => quotaStore.size === 600);
    clock.time += 86_400_000;
    quotaStore.error = new Error("busy");
    const { length } = quotaStore.saves;
    await quotaStore.until(() => quotaStore.saves.length > length);
    // Its old row would be deleted by a later batch than the one that writes its new row.
    decideAll(rateLimiter, keys(600).slice(-1));
    quotaStore.error = undefined;
    await quotaStore.until(() => quotaStore.size <= 1);
    await rateLimiter.close();
    expect(quotaStore.rows.map(([, quota]) => quota)).toMatchObject([
      { day: { used: 1, openedAt: clock.time } },
    ]);
  });
});
