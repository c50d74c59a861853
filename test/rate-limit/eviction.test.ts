import { describe, expect, test } from "bun:test";
import { DEFAULT_BAN, type Limits, type Subject } from "../../src/domain/rate-limit.ts";
import {
  createMemoryRateLimiter,
  type MemoryRateLimiter,
} from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { address, key } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };

function setUp(maxSubjects: number) {
  const clock = new TestClock(1_800_000_000_000);
  return { clock, rateLimiter: createMemoryRateLimiter({ clock, ban: DEFAULT_BAN, maxSubjects }) };
}

const keys = (count: number) => Array.from({ length: count }, (_, i) => key(i));
const addresses = (count: number) => Array.from({ length: count }, (_, i) => address(`10.0.0.${i}`));
const remembered = (rateLimiter: MemoryRateLimiter, subjects: Subject[]) =>
  subjects.filter((subject) => rateLimiter.usage(subject) !== undefined);

function request(rateLimiter: MemoryRateLimiter, subjects: Subject[], times = LIMITS.perMinute): void {
  for (const subject of subjects) for (let i = 0; i < times; i++) rateLimiter.decide(subject, LIMITS);
}

describe("when the table is full", () => {
  test("1,000,000 subjects are remembered by default", () => {
    const rateLimiter = createMemoryRateLimiter({ clock: new TestClock(0), ban: DEFAULT_BAN });
    let remembered = 0;
    for (let id = 0; id < 1_000_100; id++) rateLimiter.decide(key(id), LIMITS);
    for (let id = 0; id < 1_000_100; id++) if (rateLimiter.usage(key(id))) remembered++;
    expect(remembered).toBe(1_000_000);
  }, 60_000);

  test("a key that is banned or has exhausted its minute stays", () => {
    const { rateLimiter, clock } = setUp(50);
    const [banned, exhausted] = [keys(20).slice(0, 10), keys(20).slice(10)];
    request(rateLimiter, banned, LIMITS.perMinute + 1);
    clock.time += 1_001;
    request(rateLimiter, banned, 10);
    clock.time += 60_000;
    request(rateLimiter, exhausted);
    request(rateLimiter, addresses(1_000), 1);
    const others = keys(220).slice(20);
    for (const subject of others)
      for (let i = 0; i < 10; i++) rateLimiter.decide(subject, { perMinute: 100, perDay: 1_000 });
    for (const subject of banned) expect(rateLimiter.decide(subject, LIMITS).outcome).toBe("banned");
    for (const subject of exhausted) expect(rateLimiter.decide(subject, LIMITS).outcome).toBe("limited");
  });

  test("a key that has exhausted its day stays when its minute has closed; one that has not may be evicted", () => {
    const { rateLimiter, clock } = setUp(10);
    const limits = { perMinute: 3, perDay: 3 };
    for (const subject of keys(10)) for (let i = 0; i < 3; i++) rateLimiter.decide(subject, limits);
    clock.time += 60_000;
    request(rateLimiter, addresses(100), 1);
    for (const subject of keys(10)) expect(rateLimiter.decide(subject, limits).outcome).toBe("limited");
    for (const subject of keys(10)) rateLimiter.decide(subject, { perMinute: 9, perDay: 9 });
    request(rateLimiter, addresses(100), 1);
    expect(remembered(rateLimiter, keys(10)).length).toBeLessThan(10);
  });

  test("addresses are evicted before keys", () => {
    const { rateLimiter } = setUp(50);
    request(rateLimiter, keys(40), 1);
    request(rateLimiter, addresses(2_000), 4);
    expect(remembered(rateLimiter, keys(40))).toHaveLength(40);
    expect(remembered(rateLimiter, addresses(2_000))).toHaveLength(10);
  });

  test("of addresses, those with fewer requests are evicted first", () => {
    const { rateLimiter } = setUp(20);
    request(rateLimiter, [address("busy")], 5);
    request(rateLimiter, addresses(1_000), 1);
    expect(rateLimiter.usage(address("busy"))).toMatchObject({ day: { used: 5 } });
  });

  test("expired subjects are evicted before all others", () => {
    const { rateLimiter, clock } = setUp(20);
    request(rateLimiter, keys(19), 3);
    clock.time += 86_400_000;
    request(rateLimiter, [address("1")], 1);
    request(rateLimiter, [key(99)], 1);
    expect(remembered(rateLimiter, [address("1"), key(99)])).toHaveLength(2);
  });

  test("when every key must stay, the table grows by keys and by one address", () => {
    const { rateLimiter } = setUp(10);
    request(rateLimiter, keys(15));
    request(rateLimiter, addresses(100), 1);
    expect(remembered(rateLimiter, addresses(100))).toHaveLength(1);
    for (const subject of keys(15)) expect(rateLimiter.decide(subject, LIMITS).outcome).toBe("limited");
  });

  test("a table over its bound shrinks back to it", () => {
    const { rateLimiter, clock } = setUp(10);
    request(rateLimiter, keys(15));
    clock.time += 86_400_000;
    const newSubjects = addresses(20);
    request(rateLimiter, newSubjects, 1);
    expect(remembered(rateLimiter, newSubjects).length).toBeLessThanOrEqual(10);
  });
});
