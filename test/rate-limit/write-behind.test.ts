import { describe, expect, test } from "bun:test";
import { DEFAULT_BAN, type Limits, type Subject } from "../../src/domain/rate-limit.ts";
import {
  createMemoryRateLimiter,
  type MemoryRateLimiter,
} from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { address, key } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";
import { MapUsageStore } from "./map-usage-store.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };
const NEVER_MS = 3_600_000;

function setUp({ flushEveryMs = 1, maxAddresses = 100_000 } = {}) {
  const clock = new TestClock(1_800_000_000_000);
  const usageStore = new MapUsageStore();
  const errors: unknown[] = [];
  const onUsageStoreError = (error: unknown) => void errors.push(error);
  const recoveries: number[] = [];
  const rateLimiter = createMemoryRateLimiter({
    clock,
    ban: () => DEFAULT_BAN,
    usageStore,
    flushEveryMs,
    maxAddresses,
    onUsageStoreError,
    onUsageStoreRecovery: () => recoveries.push(errors.length),
  });
  return { clock, usageStore, errors, recoveries, rateLimiter };
}

const keys = (count: number) => Array.from({ length: count }, (_, i) => key(i));
const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

function decideAll(rateLimiter: MemoryRateLimiter, subjects: Subject[]): void {
  for (const subject of subjects) rateLimiter.decide(subject, LIMITS);
}

function earnBan(rateLimiter: MemoryRateLimiter, clock: { time: number }, subject: Subject): void {
  while (rateLimiter.decide(subject, LIMITS).outcome === "allowed");
  clock.time += 1_001;
  while (rateLimiter.decide(subject, LIMITS).outcome === "limited");
}

describe("write-behind", () => {
  test("counts are in the store after the next pass, and are written again only when they change", async () => {
    const { rateLimiter, usageStore } = setUp();
    decideAll(rateLimiter, [key(1), key(1), address("1")]);
    await usageStore.until(() => usageStore.size === 2);
    expect(usageStore.find(key(1))).toEqual(rateLimiter.usage(key(1)));
    const saves = usageStore.saves.length;
    rateLimiter.decide(key(1), LIMITS);
    await usageStore.until(() => usageStore.saves.length > saves);
    expect(usageStore.saves.at(-1)).toBe(1);
    expect(usageStore.find(key(1))?.day.used).toBe(3);
    await rateLimiter.close();
  });

  test("a pass writes batches of 256 rows, each in a time slice of its own", async () => {
    const { rateLimiter, usageStore } = setUp();
    decideAll(rateLimiter, keys(1_000));
    let turns = 0;
    const countTurns = () => void (turns++, usageStore.size < 1_000 && setImmediate(countTurns));
    await usageStore.until(() => usageStore.saves.length === 1);
    countTurns();
    await usageStore.until(() => usageStore.size === 1_000);
    expect(usageStore.saves).toEqual([256, 256, 256, 232]);
    expect(turns).toBeGreaterThanOrEqual(3);
    await rateLimiter.close();
  });

  test("a pass takes at most 64 time slices: with more rows to write, the batches grow", async () => {
    const { rateLimiter, usageStore } = setUp();
    decideAll(rateLimiter, keys(32_000));
    await usageStore.until(() => usageStore.size === 32_000);
    expect(usageStore.saves).toEqual(Array.from({ length: 64 }, () => 500));
    await rateLimiter.close();
  });

  test("many bans at once are written in batches of 256 rows", async () => {
    const { rateLimiter, usageStore, clock } = setUp({ flushEveryMs: NEVER_MS });
    const limits = { perMinute: 1, perDay: 1 };
    for (const subject of keys(600)) rateLimiter.decide(subject, limits);
    for (const subject of keys(600)) rateLimiter.decide(subject, limits);
    clock.time += 1_001;
    for (const subject of keys(600)) for (let i = 0; i < 10; i++) rateLimiter.decide(subject, limits);
    await usageStore.until(() => usageStore.size === 600);
    expect(usageStore.saves).toEqual([256, 256, 88]);
  });
});

describe("close", () => {
  test("does nothing the second time, and nothing is written after the first", async () => {
    const { rateLimiter, usageStore, clock, errors } = setUp();
    await rateLimiter.close();
    await rateLimiter.close();
    earnBan(rateLimiter, clock, key(1));
    await nextIteration();
    expect([usageStore.saves, errors]).toEqual([[], []]);
  });

  test("fails with the cause when the store does not take the counts", async () => {
    const { rateLimiter, usageStore } = setUp({ flushEveryMs: NEVER_MS });
    decideAll(rateLimiter, [key(1)]);
    usageStore.error = new Error("disk full");
    const error = await rateLimiter.close().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(Error);
    expect(error).toHaveProperty("cause", usageStore.error);
  });
});

describe("a store that fails", () => {
  test("no request fails, each beginning and end is reported once, and everything is written after it", async () => {
    const { rateLimiter, usageStore, errors, recoveries } = setUp();
    for (const message of ["disk full", "busy"]) {
      usageStore.error = new Error(message);
      decideAll(rateLimiter, keys(600));
      const { length } = usageStore.saves;
      await usageStore.until(() => usageStore.saves.length >= length + 5);
      expect(rateLimiter.decide(key(0), LIMITS)).toMatchObject({ outcome: "allowed" });
      usageStore.error = undefined;
      await usageStore.until(() => usageStore.find(key(0))?.day.used === rateLimiter.usage(key(0))?.day.used);
    }
    await usageStore.until(() =>
      usageStore.rows.every(([subject, { day }]) => day.used === (subject.id === 0 ? 4 : 2)),
    );
    expect(usageStore.size).toBe(600);
    expect(errors).toEqual([new Error("disk full"), new Error("busy")]);
    expect(recoveries).toEqual([1, 2]);
    await rateLimiter.close();
  });
});

test("addresses that were evicted while the store failed are not kept to be written", async () => {
  const { rateLimiter, usageStore } = setUp({ maxAddresses: 300 });
  usageStore.error = new Error("disk full");
  decideAll(
    rateLimiter,
    Array.from({ length: 1_000 }, (_, i) => address(`${i}`)),
  );
  const { length } = usageStore.saves;
  await usageStore.until(() => usageStore.saves.length > length);
  usageStore.error = undefined;
  const { length: failed } = usageStore.saves;
  await usageStore.until(() => usageStore.saves.length === failed + 3);
  // Batches of 256: the 700 that were evicted may have rows, and 300 are there.
  expect(usageStore.saves.slice(failed)).toEqual([512, 300, 188]);
  expect(usageStore.size).toBe(300);
  await rateLimiter.close();
});

describe("expired subjects", () => {
  test("are removed from memory and from the store", async () => {
    const { rateLimiter, usageStore, clock } = setUp();
    decideAll(rateLimiter, [...keys(5_000), address("1")]);
    await usageStore.until(() => usageStore.size === 5_001);
    clock.time += 86_399_999;
    rateLimiter.decide(key(1), LIMITS);
    clock.time += 1;
    await usageStore.until(() => usageStore.size === 1);
    expect(usageStore.rows.map(([subject]) => subject)).toEqual([key(1)]);
    await rateLimiter.close();
  });

  test("rows that expired before a start are deleted after it", async () => {
    const before = setUp();
    decideAll(before.rateLimiter, keys(300));
    await before.rateLimiter.close();
    const { usageStore } = before;
    const clock = new TestClock(before.clock.time + 86_400_000);
    const rateLimiter = createMemoryRateLimiter({
      clock,
      ban: () => DEFAULT_BAN,
      usageStore,
      flushEveryMs: 1,
    });
    await usageStore.until(() => usageStore.size === 0);
    await rateLimiter.close();
  });

  test("a key that returns before its row is deleted keeps the row", async () => {
    const { rateLimiter, usageStore, clock } = setUp();
    decideAll(rateLimiter, keys(600));
    await usageStore.until(() => usageStore.size === 600);
    clock.time += 86_400_000;
    usageStore.error = new Error("busy");
    const { length } = usageStore.saves;
    await usageStore.until(() => usageStore.saves.length > length);
    // Its old row would be deleted by a later batch than the one that writes its new row.
    decideAll(rateLimiter, keys(600).slice(-1));
    usageStore.error = undefined;
    await usageStore.until(() => usageStore.size <= 1);
    await rateLimiter.close();
    expect(usageStore.rows.map(([, usage]) => usage)).toMatchObject([
      { day: { used: 1, openedAt: clock.time } },
    ]);
  });
});
