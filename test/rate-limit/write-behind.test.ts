import { describe, expect, test } from "bun:test";
import { DAY_MS, DEFAULT_BAN, type Limits, type Subject } from "../../src/domain/rate-limit.ts";
import {
  createMemoryRateLimiter,
  type MemoryRateLimiter,
} from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { MapUsageStore } from "./ledgers.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };
const NEVER_MS = 3_600_000;

function setUp({ flushEveryMs = 1 } = {}) {
  const clock = { time: 1_800_000_000_000, now: () => clock.time };
  const usageStore = new MapUsageStore();
  const faults: unknown[] = [];
  const onUsageStoreFault = (error: unknown) => void faults.push(error);
  const rateLimiter = createMemoryRateLimiter({
    clock,
    ban: DEFAULT_BAN,
    usageStore,
    flushEveryMs,
    onUsageStoreFault,
  });
  return { clock, usageStore, faults, rateLimiter };
}

const keys = (count: number) => Array.from({ length: count }, (_, i): Subject => `key:${i}`);
const turnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));

function admitAll(rateLimiter: MemoryRateLimiter, subjects: Subject[]): void {
  for (const subject of subjects) rateLimiter.decide(subject, LIMITS);
}

function earnBan(rateLimiter: MemoryRateLimiter, clock: { time: number }, subject: Subject): void {
  while (rateLimiter.decide(subject, LIMITS).outcome === "allowed");
  clock.time += DEFAULT_BAN.graceMs + 1;
  while (rateLimiter.decide(subject, LIMITS).outcome === "limited");
}

describe("writing behind the requests", () => {
  test("what was counted is in the usageStore after the next pass, and written again only when it changes", async () => {
    const { rateLimiter, usageStore } = setUp();
    admitAll(rateLimiter, ["key:1", "key:1", "address:1"]);
    await usageStore.until(() => usageStore.rows.size === 2);
    expect(usageStore.find("key:1")).toEqual(rateLimiter.usage("key:1"));
    const saves = usageStore.saves.length;
    rateLimiter.decide("key:1", LIMITS);
    await usageStore.until(() => usageStore.saves.length > saves);
    expect(usageStore.saves.at(-1)).toBe(1);
    expect(usageStore.find("key:1")?.day.used).toBe(3);
    await rateLimiter.close();
  });

  test("a pass is cut into slices of 256 rows, with a turn of the loop between them", async () => {
    const { rateLimiter, usageStore } = setUp();
    admitAll(rateLimiter, keys(1_000));
    let turns = 0;
    const countTurns = () => void (turns++, usageStore.rows.size < 1_000 && setImmediate(countTurns));
    await usageStore.until(() => usageStore.saves.length === 1);
    countTurns();
    await usageStore.until(() => usageStore.rows.size === 1_000);
    expect(usageStore.saves).toEqual([256, 256, 256, 232]);
    expect(turns).toBeGreaterThanOrEqual(3);
    await rateLimiter.close();
  });

  test("a pass takes 64 turns at the most: with more to write the slices grow", async () => {
    const { rateLimiter, usageStore } = setUp();
    admitAll(rateLimiter, keys(32_000));
    await usageStore.until(() => usageStore.rows.size === 32_000);
    expect(usageStore.saves).toEqual(Array.from({ length: 64 }, () => 500));
    await rateLimiter.close();
  });

  test("a ban is in the usageStore at the next turn of the loop, without waiting for a pass", async () => {
    const { rateLimiter, usageStore, clock } = setUp({ flushEveryMs: NEVER_MS });
    admitAll(rateLimiter, keys(10));
    earnBan(rateLimiter, clock, "key:3");
    expect(usageStore.rows.size).toBe(0);
    await turnOfTheLoop();
    expect([...usageStore.rows.keys()]).toEqual(["key:3"]);
    expect(usageStore.find("key:3")?.bannedUntil).toBe(clock.time + DEFAULT_BAN.lengthMs);
    for (let i = 0; i < 50; i++) rateLimiter.decide("key:3", LIMITS);
    await turnOfTheLoop();
    expect(usageStore.saves).toEqual([1]);
  });

  test("a unban is in the usageStore at the next turn of the loop", async () => {
    const { rateLimiter, usageStore, clock } = setUp({ flushEveryMs: NEVER_MS });
    earnBan(rateLimiter, clock, "key:1");
    await turnOfTheLoop();
    rateLimiter.unban("key:1", clock.time);
    await turnOfTheLoop();
    expect(usageStore.find("key:1")?.bannedUntil).toBe(-1);
  });

  test("many bans at once are written in slices too", async () => {
    const { rateLimiter, usageStore, clock } = setUp({ flushEveryMs: NEVER_MS });
    const limits = { perMinute: 1, perDay: 1 };
    for (const subject of keys(600)) rateLimiter.decide(subject, limits);
    for (const subject of keys(600)) rateLimiter.decide(subject, limits);
    clock.time += DEFAULT_BAN.graceMs + 1;
    for (const subject of keys(600)) for (let i = 0; i < 10; i++) rateLimiter.decide(subject, limits);
    await usageStore.until(() => usageStore.rows.size === 600);
    expect(usageStore.saves).toEqual([256, 256, 88]);
  });
});

describe("closing", () => {
  test("everything is in the usageStore, exactly", async () => {
    const { rateLimiter, usageStore } = setUp({ flushEveryMs: NEVER_MS });
    admitAll(rateLimiter, keys(1_000));
    admitAll(rateLimiter, ["address:1", "key:7"]);
    const standings = keys(1_000).map((subject) => rateLimiter.usage(subject));
    await rateLimiter.close();
    expect(keys(1_000).map((subject) => usageStore.find(subject))).toEqual(standings);
    expect(usageStore.rows.size).toBe(1_001);
  });

  test("a pass that is under way is finished, and what waits behind it", async () => {
    const { rateLimiter, usageStore } = setUp();
    admitAll(rateLimiter, keys(1_000));
    await usageStore.until(() => usageStore.saves.length === 1);
    admitAll(rateLimiter, ["key:0", "key:5000"]);
    await rateLimiter.close();
    expect(usageStore.rows.size).toBe(1_001);
    expect(usageStore.find("key:0")?.day.used).toBe(2);
    const { length } = usageStore.saves;
    await turnOfTheLoop();
    expect(usageStore.saves).toHaveLength(length);
  });

  test("a second time is nothing, and nothing is written after the first", async () => {
    const { rateLimiter, usageStore, clock, faults } = setUp();
    await rateLimiter.close();
    await rateLimiter.close();
    earnBan(rateLimiter, clock, "key:1");
    await turnOfTheLoop();
    expect([usageStore.saves, faults]).toEqual([[], []]);
  });

  test("a usageStore that does not take what is left is a fault, with its cause", async () => {
    const { rateLimiter, usageStore } = setUp({ flushEveryMs: NEVER_MS });
    admitAll(rateLimiter, ["key:1"]);
    usageStore.fault = new Error("disk full");
    const fault = await rateLimiter.close().catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(Error);
    expect(fault).toHaveProperty("cause", usageStore.fault);
  });

  test("without a usageStore there is nothing to write", async () => {
    const rateLimiter = createMemoryRateLimiter({ clock: { now: () => 0 }, ban: DEFAULT_BAN });
    expect(rateLimiter.decide("key:1", LIMITS)).toMatchObject({ outcome: "allowed", remaining: 4 });
    await rateLimiter.close();
  });
});

describe("a usageStore that fails", () => {
  test("no request notices, it is told once, and everything is written when it works again", async () => {
    const { rateLimiter, usageStore, faults } = setUp();
    usageStore.fault = new Error("disk full");
    admitAll(rateLimiter, keys(600));
    await usageStore.until(() => usageStore.saves.length >= 5);
    expect(rateLimiter.decide("key:0", LIMITS)).toMatchObject({ outcome: "allowed", remaining: 3 });
    expect(faults).toEqual([usageStore.fault]);
    usageStore.fault = undefined;
    await usageStore.until(() => usageStore.rows.size === 600);
    expect(usageStore.find("key:0")?.day.used).toBe(2);
    expect(faults).toHaveLength(1);
    await rateLimiter.close();
  });

  test("each time it begins to fail is told", async () => {
    const { rateLimiter, usageStore, faults } = setUp();
    for (const message of ["first", "second"]) {
      usageStore.fault = new Error(message);
      rateLimiter.decide("key:1", LIMITS);
      const { length } = usageStore.saves;
      await usageStore.until(() => usageStore.saves.length >= length + 3);
      usageStore.fault = undefined;
      const { used } = rateLimiter.usage("key:1")?.day ?? { used: 0 };
      await usageStore.until(() => usageStore.find("key:1")?.day.used === used);
    }
    expect(faults).toEqual([new Error("first"), new Error("second")]);
    await rateLimiter.close();
  });

  test("a ban that could not be written at once is written with the next pass", async () => {
    const { rateLimiter, usageStore, clock } = setUp();
    usageStore.fault = new Error("busy");
    earnBan(rateLimiter, clock, "key:1");
    await usageStore.until(() => usageStore.saves.length >= 2);
    usageStore.fault = undefined;
    await usageStore.until(() => usageStore.rows.size === 1);
    expect(usageStore.find("key:1")?.bannedUntil).toBe(clock.time + DEFAULT_BAN.lengthMs);
    await rateLimiter.close();
  });
});

describe("subjects that are idle", () => {
  test("they are dropped when all has ended, and leave the usageStore", async () => {
    const { rateLimiter, usageStore, clock } = setUp();
    admitAll(rateLimiter, [...keys(5_000), "address:1"]);
    await usageStore.until(() => usageStore.rows.size === 5_001);
    clock.time += DAY_MS - 1;
    rateLimiter.decide("key:1", LIMITS);
    clock.time += 1;
    await usageStore.until(() => usageStore.rows.size === 1);
    expect([...usageStore.rows.keys()]).toEqual(["key:1"]);
    await rateLimiter.close();
  });

  test("rows that ended while nobody ran leave the usageStore after a start", async () => {
    const before = setUp();
    admitAll(before.rateLimiter, keys(300));
    await before.rateLimiter.close();
    const { usageStore } = before;
    const clock = { now: () => before.clock.time + DAY_MS };
    const rateLimiter = createMemoryRateLimiter({ clock, ban: DEFAULT_BAN, usageStore, flushEveryMs: 1 });
    await usageStore.until(() => usageStore.rows.size === 0);
    await rateLimiter.close();
  });

  const oddAddresses = keys(600).map((subject): Subject => `address:${"x".repeat(100)}${subject}`);
  for (const [kind, subjects] of Object.entries({ key: keys(600), "oddly named address": oddAddresses })) {
    test(`of many, the last ${kind} returns before its row is gone and keeps it`, async () => {
      const { rateLimiter, usageStore, clock } = setUp();
      admitAll(rateLimiter, subjects);
      await usageStore.until(() => usageStore.rows.size === 600);
      clock.time += DAY_MS;
      usageStore.fault = new Error("busy");
      const { length } = usageStore.saves;
      await usageStore.until(() => usageStore.saves.length > length);
      // Its old row is to be deleted with a later slice than the one that its new row is written with.
      admitAll(rateLimiter, subjects.slice(-1));
      usageStore.fault = undefined;
      await usageStore.until(() => usageStore.rows.size <= 1);
      await rateLimiter.close();
      expect([...usageStore.rows.values()]).toMatchObject([{ day: { used: 1, openedAt: clock.time } }]);
    });
  }
});
