import { describe, expect, test } from "bun:test";
import { scheduler } from "../../src/event-loop.ts";
import { DEFAULT_BAN, type Limits, type Subject } from "../../src/domain/rate-limit.ts";
import {
  createMemoryRateLimiter,
  type MemoryRateLimiter,
} from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { MapUsageStore } from "./map-usage-store.ts";
import { address, key } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };

function setUp(maxAddresses: number, time = scheduler) {
  const clock = new TestClock(1_800_000_000_000);
  const options = { clock, ban: DEFAULT_BAN, maxAddresses, scheduler: time };
  return { clock, rateLimiter: createMemoryRateLimiter(options) };
}

const keys = (count: number) => Array.from({ length: count }, (_, i) => key(i));
const addresses = (count: number) => Array.from({ length: count }, (_, i) => address(`10.0.0.${i}`));
const remembered = (rateLimiter: MemoryRateLimiter, subjects: Subject[]) =>
  subjects.filter((subject) => rateLimiter.usage(subject) !== undefined);

function request(rateLimiter: MemoryRateLimiter, subjects: Subject[], times = LIMITS.perMinute): void {
  for (const subject of subjects) for (let i = 0; i < times; i++) rateLimiter.decide(subject, LIMITS);
}

describe("when the table is full", () => {
  test("1,000,000 addresses are remembered by default, and every key beside them", () => {
    const rateLimiter = createMemoryRateLimiter({ clock: new TestClock(0), ban: DEFAULT_BAN });
    let remembered = 0;
    for (let id = 0; id < 1_000_100; id++) rateLimiter.decide(address(`${id}`), LIMITS);
    for (let id = 0; id < 1_000_100; id++) rateLimiter.decide(key(id), LIMITS);
    for (let id = 0; id < 1_000_100; id++) if (rateLimiter.usage(address(`${id}`))) remembered++;
    expect(remembered).toBe(1_000_000);
    for (let id = 0; id < 1_000_100; id++) if (rateLimiter.usage(key(id))) remembered++;
    expect(remembered).toBe(2_000_100);
  }, 60_000);

  test("keys stay, also those that are found by hash as addresses are", () => {
    const { rateLimiter } = setUp(10);
    const both = [...keys(40), ...keys(5).map(({ id }) => key(5_000_000 + id))];
    request(rateLimiter, both, 1);
    request(rateLimiter, addresses(2_000), 4);
    expect(remembered(rateLimiter, both)).toHaveLength(45);
    expect(remembered(rateLimiter, addresses(2_000))).toHaveLength(10);
  });

  test("those with fewer requests are evicted first", () => {
    const { rateLimiter } = setUp(20);
    request(rateLimiter, [address("busy")], 5);
    request(rateLimiter, addresses(1_000), 1);
    expect(rateLimiter.usage(address("busy"))).toMatchObject({ day: { used: 5 } });
  });

  test("expired ones are evicted before all others", () => {
    const { rateLimiter, clock } = setUp(20);
    request(rateLimiter, addresses(19), 3);
    clock.time += 86_400_000;
    request(rateLimiter, [address("1"), address("2")], 1);
    expect(remembered(rateLimiter, [address("1"), address("2")])).toHaveLength(2);
  });

  test("a start restores every key and as many addresses as fit", () => {
    const { rateLimiter: earlier, clock } = setUp(30);
    const subjects = [...keys(30), ...addresses(30)];
    request(earlier, subjects, 1);
    const usageStore = new MapUsageStore();
    usageStore.save(subjects.map((subject) => [subject, earlier.usage(subject)]));
    const rateLimiter = createMemoryRateLimiter({ clock, ban: DEFAULT_BAN, maxAddresses: 10, usageStore });
    expect(remembered(rateLimiter, keys(30))).toHaveLength(30);
    expect(remembered(rateLimiter, addresses(30))).toHaveLength(10);
  });

  test("a table over its bound, because samples had keys only, shrinks back to it", () => {
    let random = () => 0;
    const { rateLimiter } = setUp(3, { ...scheduler, random: () => random() });
    request(rateLimiter, [key(5_000_000), ...addresses(6)], 1);
    expect(remembered(rateLimiter, addresses(20))).toHaveLength(6);
    random = Math.random;
    request(rateLimiter, addresses(20), 1);
    expect(remembered(rateLimiter, addresses(20))).toHaveLength(3);
  });
});
