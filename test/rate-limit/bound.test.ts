import { describe, expect, test } from "bun:test";
import { DAY_MS, DEFAULT_BAN, MINUTE_MS, type Limits, type Subject } from "../../src/domain/rate-limit.ts";
import {
  createMemoryRateLimiter,
  type MemoryRateLimiter,
} from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { MapUsageStore } from "./ledgers.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };

function setUp(maxSubjects: number, usageStore = new MapUsageStore()) {
  const clock = { time: 1_800_000_000_000, now: () => clock.time };
  const rateLimiter = createMemoryRateLimiter({
    clock,
    ban: DEFAULT_BAN,
    usageStore,
    maxSubjects,
    flushEveryMs: 3_600_000,
  });
  return { clock, rateLimiter, usageStore };
}

const keys = (count: number) => Array.from({ length: count }, (_, i): Subject => `key:${i}`);
const addresses = (count: number) => Array.from({ length: count }, (_, i): Subject => `address:10.0.0.${i}`);
const known = (rateLimiter: MemoryRateLimiter, subjects: Subject[]) =>
  subjects.filter((subject) => rateLimiter.usage(subject) !== undefined);

function spend(rateLimiter: MemoryRateLimiter, subjects: Subject[], times = LIMITS.perMinute): void {
  for (const subject of subjects) for (let i = 0; i < times; i++) rateLimiter.decide(subject, LIMITS);
}

describe("at the bound", () => {
  test("no more subjects are known than the bound allows", () => {
    const { rateLimiter } = setUp(100);
    spend(rateLimiter, addresses(1_000), 1);
    expect(known(rateLimiter, addresses(1_000))).toHaveLength(100);
  });

  test("a key that is banned or has spent its minute is never lost", () => {
    const { rateLimiter, clock } = setUp(50);
    const [banned, spent] = [keys(20).slice(0, 10), keys(20).slice(10)];
    spend(rateLimiter, banned, LIMITS.perMinute + 1);
    clock.time += DEFAULT_BAN.graceMs + 1;
    spend(rateLimiter, banned, DEFAULT_BAN.strikes);
    clock.time += MINUTE_MS;
    spend(rateLimiter, spent);
    spend(rateLimiter, addresses(2_000), 1);
    for (const subject of banned) expect(rateLimiter.decide(subject, LIMITS).outcome).toBe("banned");
    for (const subject of spent) expect(rateLimiter.decide(subject, LIMITS).outcome).toBe("limited");
  });

  test("a key that is banned is kept though its minute has closed and there is nothing else to lose", () => {
    const { rateLimiter, clock } = setUp(10);
    spend(rateLimiter, keys(10), LIMITS.perMinute + 1);
    clock.time += DEFAULT_BAN.graceMs + 1;
    spend(rateLimiter, keys(10), DEFAULT_BAN.strikes);
    clock.time += MINUTE_MS;
    spend(rateLimiter, addresses(100), 1);
    for (const subject of keys(10)) expect(rateLimiter.decide(subject, LIMITS).outcome).toBe("banned");
  });

  test("a key that has spent its day is kept when the minute has closed, one that has not may go", () => {
    const { rateLimiter, clock } = setUp(10);
    const limits = { perMinute: 3, perDay: 3 };
    for (const subject of keys(10)) for (let i = 0; i < 3; i++) rateLimiter.decide(subject, limits);
    clock.time += MINUTE_MS;
    spend(rateLimiter, addresses(100), 1);
    for (const subject of keys(10)) expect(rateLimiter.decide(subject, limits).outcome).toBe("limited");
    for (const subject of keys(10)) rateLimiter.decide(subject, { perMinute: 9, perDay: 9 });
    spend(rateLimiter, addresses(100), 1);
    expect(known(rateLimiter, keys(10)).length).toBeLessThan(10);
  });

  test("addresses go before keys", () => {
    const { rateLimiter } = setUp(50);
    spend(rateLimiter, keys(40), 1);
    spend(rateLimiter, addresses(2_000), 4);
    expect(known(rateLimiter, keys(40))).toHaveLength(40);
    expect(known(rateLimiter, addresses(2_000))).toHaveLength(10);
  });

  test("of addresses, those with fewer requests go first", () => {
    const { rateLimiter } = setUp(20);
    spend(rateLimiter, ["address:busy"], 5);
    spend(rateLimiter, addresses(1_000), 1);
    expect(rateLimiter.usage("address:busy")).toMatchObject({ day: { used: 5 } });
  });

  test("what has expired goes before everything else", () => {
    const { rateLimiter, clock } = setUp(20);
    spend(rateLimiter, keys(19), 3);
    clock.time += DAY_MS;
    spend(rateLimiter, ["address:1"], 1);
    spend(rateLimiter, ["key:99"], 1);
    expect(known(rateLimiter, ["address:1", "key:99"])).toHaveLength(2);
  });

  test("when nothing may be lost the bound gives way to keys, and to a single address", () => {
    const { rateLimiter } = setUp(10);
    spend(rateLimiter, keys(15));
    spend(rateLimiter, addresses(100), 1);
    expect(known(rateLimiter, addresses(100))).toHaveLength(1);
    for (const subject of keys(15)) expect(rateLimiter.decide(subject, LIMITS).outcome).toBe("limited");
  });

  test("a bound that gave way is reached again when it can be", () => {
    const { rateLimiter, clock } = setUp(10);
    spend(rateLimiter, keys(15));
    clock.time += DAY_MS;
    const newcomers = addresses(20);
    spend(rateLimiter, newcomers, 1);
    expect(known(rateLimiter, newcomers).length).toBeLessThanOrEqual(10);
  });

  test("a key that had spent its minute before a restart is not lost after it", async () => {
    const before = setUp(10);
    spend(before.rateLimiter, keys(10));
    await before.rateLimiter.close();
    const { rateLimiter } = setUp(10, before.usageStore);
    spend(rateLimiter, addresses(1_000), 1);
    for (const subject of keys(10)) expect(rateLimiter.decide(subject, LIMITS).outcome).toBe("limited");
  });

  test("what is dropped leaves the usageStore too, also when it is dropped while loading", async () => {
    const before = setUp(100);
    spend(before.rateLimiter, addresses(100), 1);
    await before.rateLimiter.close();
    expect(before.usageStore.rows.size).toBe(100);
    const after = setUp(30, before.usageStore);
    await after.rateLimiter.close();
    expect(after.usageStore.rows.size).toBe(30);
  });
});
