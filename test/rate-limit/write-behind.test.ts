import { describe, expect, test } from "bun:test";
import { DAY_MS, DEFAULT_BAN, type Limits, type Subject } from "../../src/domain/rate-limit.ts";
import { createMemoryLimiter, type MemoryLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { MapLedger } from "./ledgers.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };
const NEVER_MS = 3_600_000;

function setUp({ flushEveryMs = 1 } = {}) {
  const clock = { time: 1_800_000_000_000, now: () => clock.time };
  const ledger = new MapLedger();
  const faults: unknown[] = [];
  const onLedgerFault = (error: unknown) => void faults.push(error);
  const limiter = createMemoryLimiter({ clock, ban: DEFAULT_BAN, ledger, flushEveryMs, onLedgerFault });
  return { clock, ledger, faults, limiter };
}

const keys = (count: number) => Array.from({ length: count }, (_, i): Subject => `key:${i}`);
const turnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));

function admitAll(limiter: MemoryLimiter, subjects: Subject[]): void {
  for (const subject of subjects) limiter.admit(subject, LIMITS);
}

function earnBan(limiter: MemoryLimiter, clock: { time: number }, subject: Subject): void {
  while (limiter.admit(subject, LIMITS).outcome === "admitted");
  clock.time += DEFAULT_BAN.graceMs + 1;
  while (limiter.admit(subject, LIMITS).outcome === "limited");
}

describe("writing behind the requests", () => {
  test("what was counted is in the ledger after the next pass, and written again only when it changes", async () => {
    const { limiter, ledger } = setUp();
    admitAll(limiter, ["key:1", "key:1", "address:1"]);
    await ledger.until(() => ledger.rows.size === 2);
    expect(ledger.find("key:1")).toEqual(limiter.standing("key:1"));
    const saves = ledger.saves.length;
    limiter.admit("key:1", LIMITS);
    await ledger.until(() => ledger.saves.length > saves);
    expect(ledger.saves.at(-1)).toBe(1);
    expect(ledger.find("key:1")?.day.used).toBe(3);
    await limiter.close();
  });

  test("a pass is cut into slices of 256 rows, with a turn of the loop between them", async () => {
    const { limiter, ledger } = setUp();
    admitAll(limiter, keys(1_000));
    let turns = 0;
    const countTurns = () => void (turns++, ledger.rows.size < 1_000 && setImmediate(countTurns));
    await ledger.until(() => ledger.saves.length === 1);
    countTurns();
    await ledger.until(() => ledger.rows.size === 1_000);
    expect(ledger.saves).toEqual([256, 256, 256, 232]);
    expect(turns).toBeGreaterThanOrEqual(3);
    await limiter.close();
  });

  test("a pass takes 64 turns at the most: with more to write the slices grow", async () => {
    const { limiter, ledger } = setUp();
    admitAll(limiter, keys(32_000));
    await ledger.until(() => ledger.rows.size === 32_000);
    expect(ledger.saves).toEqual(Array.from({ length: 64 }, () => 500));
    await limiter.close();
  });

  test("a ban is in the ledger at the next turn of the loop, without waiting for a pass", async () => {
    const { limiter, ledger, clock } = setUp({ flushEveryMs: NEVER_MS });
    admitAll(limiter, keys(10));
    earnBan(limiter, clock, "key:3");
    expect(ledger.rows.size).toBe(0);
    await turnOfTheLoop();
    expect([...ledger.rows.keys()]).toEqual(["key:3"]);
    expect(ledger.find("key:3")?.bannedUntil).toBe(clock.time + DEFAULT_BAN.lengthMs);
    for (let i = 0; i < 50; i++) limiter.admit("key:3", LIMITS);
    await turnOfTheLoop();
    expect(ledger.saves).toEqual([1]);
  });

  test("a pardon is in the ledger at the next turn of the loop", async () => {
    const { limiter, ledger, clock } = setUp({ flushEveryMs: NEVER_MS });
    earnBan(limiter, clock, "key:1");
    await turnOfTheLoop();
    limiter.pardon("key:1", clock.time);
    await turnOfTheLoop();
    expect(ledger.find("key:1")?.bannedUntil).toBe(-1);
  });

  test("many bans at once are written in slices too", async () => {
    const { limiter, ledger, clock } = setUp({ flushEveryMs: NEVER_MS });
    const limits = { perMinute: 1, perDay: 1 };
    for (const subject of keys(600)) limiter.admit(subject, limits);
    for (const subject of keys(600)) limiter.admit(subject, limits);
    clock.time += DEFAULT_BAN.graceMs + 1;
    for (const subject of keys(600)) for (let i = 0; i < 10; i++) limiter.admit(subject, limits);
    await ledger.until(() => ledger.rows.size === 600);
    expect(ledger.saves).toEqual([256, 256, 88]);
  });
});

describe("closing", () => {
  test("everything is in the ledger, exactly", async () => {
    const { limiter, ledger } = setUp({ flushEveryMs: NEVER_MS });
    admitAll(limiter, keys(1_000));
    admitAll(limiter, ["address:1", "key:7"]);
    const standings = keys(1_000).map((subject) => limiter.standing(subject));
    await limiter.close();
    expect(keys(1_000).map((subject) => ledger.find(subject))).toEqual(standings);
    expect(ledger.rows.size).toBe(1_001);
  });

  test("a pass that is under way is finished, and what waits behind it", async () => {
    const { limiter, ledger } = setUp();
    admitAll(limiter, keys(1_000));
    await ledger.until(() => ledger.saves.length === 1);
    admitAll(limiter, ["key:0", "key:5000"]);
    await limiter.close();
    expect(ledger.rows.size).toBe(1_001);
    expect(ledger.find("key:0")?.day.used).toBe(2);
    const { length } = ledger.saves;
    await turnOfTheLoop();
    expect(ledger.saves).toHaveLength(length);
  });

  test("a second time is nothing, and nothing is written after the first", async () => {
    const { limiter, ledger, clock, faults } = setUp();
    await limiter.close();
    await limiter.close();
    earnBan(limiter, clock, "key:1");
    await turnOfTheLoop();
    expect([ledger.saves, faults]).toEqual([[], []]);
  });

  test("a ledger that does not take what is left is a fault, with its cause", async () => {
    const { limiter, ledger } = setUp({ flushEveryMs: NEVER_MS });
    admitAll(limiter, ["key:1"]);
    ledger.fault = new Error("disk full");
    const fault = await limiter.close().catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(Error);
    expect(fault).toHaveProperty("cause", ledger.fault);
  });

  test("without a ledger there is nothing to write", async () => {
    const limiter = createMemoryLimiter({ clock: { now: () => 0 }, ban: DEFAULT_BAN });
    expect(limiter.admit("key:1", LIMITS)).toMatchObject({ outcome: "admitted", remaining: 4 });
    await limiter.close();
  });
});

describe("a ledger that fails", () => {
  test("no request notices, it is told once, and everything is written when it works again", async () => {
    const { limiter, ledger, faults } = setUp();
    ledger.fault = new Error("disk full");
    admitAll(limiter, keys(600));
    await ledger.until(() => ledger.saves.length >= 5);
    expect(limiter.admit("key:0", LIMITS)).toMatchObject({ outcome: "admitted", remaining: 3 });
    expect(faults).toEqual([ledger.fault]);
    ledger.fault = undefined;
    await ledger.until(() => ledger.rows.size === 600);
    expect(ledger.find("key:0")?.day.used).toBe(2);
    expect(faults).toHaveLength(1);
    await limiter.close();
  });

  test("each time it begins to fail is told", async () => {
    const { limiter, ledger, faults } = setUp();
    for (const message of ["first", "second"]) {
      ledger.fault = new Error(message);
      limiter.admit("key:1", LIMITS);
      const { length } = ledger.saves;
      await ledger.until(() => ledger.saves.length >= length + 3);
      ledger.fault = undefined;
      const { used } = limiter.standing("key:1")?.day ?? { used: 0 };
      await ledger.until(() => ledger.find("key:1")?.day.used === used);
    }
    expect(faults).toEqual([new Error("first"), new Error("second")]);
    await limiter.close();
  });

  test("a ban that could not be written at once is written with the next pass", async () => {
    const { limiter, ledger, clock } = setUp();
    ledger.fault = new Error("busy");
    earnBan(limiter, clock, "key:1");
    await ledger.until(() => ledger.saves.length >= 2);
    ledger.fault = undefined;
    await ledger.until(() => ledger.rows.size === 1);
    expect(ledger.find("key:1")?.bannedUntil).toBe(clock.time + DEFAULT_BAN.lengthMs);
    await limiter.close();
  });
});

describe("subjects that are idle", () => {
  test("they are dropped when all has ended, and leave the ledger", async () => {
    const { limiter, ledger, clock } = setUp();
    admitAll(limiter, [...keys(5_000), "address:1"]);
    await ledger.until(() => ledger.rows.size === 5_001);
    clock.time += DAY_MS - 1;
    limiter.admit("key:1", LIMITS);
    clock.time += 1;
    await ledger.until(() => ledger.rows.size === 1);
    expect([...ledger.rows.keys()]).toEqual(["key:1"]);
    await limiter.close();
  });

  test("rows that ended while nobody ran leave the ledger after a start", async () => {
    const before = setUp();
    admitAll(before.limiter, keys(300));
    await before.limiter.close();
    const { ledger } = before;
    const clock = { now: () => before.clock.time + DAY_MS };
    const limiter = createMemoryLimiter({ clock, ban: DEFAULT_BAN, ledger, flushEveryMs: 1 });
    await ledger.until(() => ledger.rows.size === 0);
    await limiter.close();
  });

  const oddAddresses = keys(600).map((subject): Subject => `address:${"x".repeat(100)}${subject}`);
  for (const [kind, subjects] of Object.entries({ key: keys(600), "oddly named address": oddAddresses })) {
    test(`of many, the last ${kind} returns before its row is gone and keeps it`, async () => {
      const { limiter, ledger, clock } = setUp();
      admitAll(limiter, subjects);
      await ledger.until(() => ledger.rows.size === 600);
      clock.time += DAY_MS;
      ledger.fault = new Error("busy");
      const { length } = ledger.saves;
      await ledger.until(() => ledger.saves.length > length);
      // Its old row is to be deleted with a later slice than the one that its new row is written with.
      admitAll(limiter, subjects.slice(-1));
      ledger.fault = undefined;
      await ledger.until(() => ledger.rows.size <= 1);
      await limiter.close();
      expect([...ledger.rows.values()]).toMatchObject([{ day: { used: 1, openedAt: clock.time } }]);
    });
  }
});
