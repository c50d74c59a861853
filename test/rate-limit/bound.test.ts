import { describe, expect, test } from "bun:test";
import { DAY_MS, DEFAULT_BAN, MINUTE_MS, type Limits, type Subject } from "../../src/domain/rate-limit.ts";
import { createMemoryLimiter, type MemoryLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { MapLedger } from "./ledgers.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };

function setUp(maxSubjects: number, ledger = new MapLedger()) {
  const clock = { time: 1_800_000_000_000, now: () => clock.time };
  const limiter = createMemoryLimiter({
    clock,
    ban: DEFAULT_BAN,
    ledger,
    maxSubjects,
    flushEveryMs: 3_600_000,
  });
  return { clock, limiter, ledger };
}

const keys = (count: number) => Array.from({ length: count }, (_, i): Subject => `key:${i}`);
const addresses = (count: number) => Array.from({ length: count }, (_, i): Subject => `address:10.0.0.${i}`);
const known = (limiter: MemoryLimiter, subjects: Subject[]) =>
  subjects.filter((subject) => limiter.standing(subject) !== undefined);

function spend(limiter: MemoryLimiter, subjects: Subject[], times = LIMITS.perMinute): void {
  for (const subject of subjects) for (let i = 0; i < times; i++) limiter.admit(subject, LIMITS);
}

describe("at the bound", () => {
  test("no more subjects are known than the bound allows", () => {
    const { limiter } = setUp(100);
    spend(limiter, addresses(1_000), 1);
    expect(known(limiter, addresses(1_000))).toHaveLength(100);
  });

  test("a key that is banned or has spent its minute is never lost", () => {
    const { limiter, clock } = setUp(50);
    const [banned, spent] = [keys(20).slice(0, 10), keys(20).slice(10)];
    spend(limiter, banned, LIMITS.perMinute + 1);
    clock.time += DEFAULT_BAN.graceMs + 1;
    spend(limiter, banned, DEFAULT_BAN.strikes);
    clock.time += MINUTE_MS;
    spend(limiter, spent);
    spend(limiter, addresses(2_000), 1);
    for (const subject of banned) expect(limiter.admit(subject, LIMITS).outcome).toBe("banned");
    for (const subject of spent) expect(limiter.admit(subject, LIMITS).outcome).toBe("limited");
  });

  test("a key that is banned is kept though its minute has closed and there is nothing else to lose", () => {
    const { limiter, clock } = setUp(10);
    spend(limiter, keys(10), LIMITS.perMinute + 1);
    clock.time += DEFAULT_BAN.graceMs + 1;
    spend(limiter, keys(10), DEFAULT_BAN.strikes);
    clock.time += MINUTE_MS;
    spend(limiter, addresses(100), 1);
    for (const subject of keys(10)) expect(limiter.admit(subject, LIMITS).outcome).toBe("banned");
  });

  test("a key that has spent its day is kept when the minute has closed, one that has not may go", () => {
    const { limiter, clock } = setUp(10);
    const limits = { perMinute: 3, perDay: 3 };
    for (const subject of keys(10)) for (let i = 0; i < 3; i++) limiter.admit(subject, limits);
    clock.time += MINUTE_MS;
    spend(limiter, addresses(100), 1);
    for (const subject of keys(10)) expect(limiter.admit(subject, limits).outcome).toBe("limited");
    for (const subject of keys(10)) limiter.admit(subject, { perMinute: 9, perDay: 9 });
    spend(limiter, addresses(100), 1);
    expect(known(limiter, keys(10)).length).toBeLessThan(10);
  });

  test("addresses go before keys", () => {
    const { limiter } = setUp(50);
    spend(limiter, keys(40), 1);
    spend(limiter, addresses(2_000), 4);
    expect(known(limiter, keys(40))).toHaveLength(40);
    expect(known(limiter, addresses(2_000))).toHaveLength(10);
  });

  test("of addresses, those with fewer requests go first", () => {
    const { limiter } = setUp(20);
    spend(limiter, ["address:busy"], 5);
    spend(limiter, addresses(1_000), 1);
    expect(limiter.standing("address:busy")).toMatchObject({ day: { used: 5 } });
  });

  test("what has expired goes before everything else", () => {
    const { limiter, clock } = setUp(20);
    spend(limiter, keys(19), 3);
    clock.time += DAY_MS;
    spend(limiter, ["address:1"], 1);
    spend(limiter, ["key:99"], 1);
    expect(known(limiter, ["address:1", "key:99"])).toHaveLength(2);
  });

  test("when nothing may be lost the bound gives way to keys, and to a single address", () => {
    const { limiter } = setUp(10);
    spend(limiter, keys(15));
    spend(limiter, addresses(100), 1);
    expect(known(limiter, addresses(100))).toHaveLength(1);
    for (const subject of keys(15)) expect(limiter.admit(subject, LIMITS).outcome).toBe("limited");
  });

  test("a bound that gave way is reached again when it can be", () => {
    const { limiter, clock } = setUp(10);
    spend(limiter, keys(15));
    clock.time += DAY_MS;
    const newcomers = addresses(20);
    spend(limiter, newcomers, 1);
    expect(known(limiter, newcomers).length).toBeLessThanOrEqual(10);
  });

  test("a key that had spent its minute before a restart is not lost after it", async () => {
    const before = setUp(10);
    spend(before.limiter, keys(10));
    await before.limiter.close();
    const { limiter } = setUp(10, before.ledger);
    spend(limiter, addresses(1_000), 1);
    for (const subject of keys(10)) expect(limiter.admit(subject, LIMITS).outcome).toBe("limited");
  });

  test("what is dropped leaves the ledger too, also when it is dropped while loading", async () => {
    const before = setUp(100);
    spend(before.limiter, addresses(100), 1);
    await before.limiter.close();
    expect(before.ledger.rows.size).toBe(100);
    const after = setUp(30, before.ledger);
    await after.limiter.close();
    expect(after.ledger.rows.size).toBe(30);
  });
});
