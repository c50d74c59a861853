import { describe, expect, test } from "bun:test";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import type { Limits, Subject } from "../../src/domain/rate-limit.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory-rate-limiter.ts";
import { MapQuotaStore } from "./map-quota-store.ts";
import { address, key, keys } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";

const LIMITS: Limits = { perMinute: 5, perDay: 1_000 };

function setUp(maxAddresses: number) {
  const clock = new TestClock(1_800_000_000_000);
  const options = { clock, ban: () => DEFAULT_BAN, maxAddresses };
  return { clock, rateLimiter: new MemoryRateLimiter(options) };
}

const addresses = (count: number) => Array.from({ length: count }, (_, i) => address(`10.0.0.${i}`));
const remembered = (rateLimiter: MemoryRateLimiter, subjects: Subject[]) =>
  subjects.filter((subject) => rateLimiter.quota(subject) !== undefined);

function request(rateLimiter: MemoryRateLimiter, subjects: Subject[], times = LIMITS.perMinute): void {
  for (const subject of subjects) for (let i = 0; i < times; i++) rateLimiter.decide(subject, LIMITS);
}

describe("when the table is full", () => {
  test("100,000 addresses are remembered by default, and every key besides", () => {
    const rateLimiter = new MemoryRateLimiter({ clock: new TestClock(0), ban: () => DEFAULT_BAN });
    const ids = Array.from({ length: 100_100 }, (_, id) => id);
    for (const id of ids) rateLimiter.decide(address(`${id}`), LIMITS);
    for (const id of ids) rateLimiter.decide(key(id), LIMITS);
    expect(ids.filter((id) => rateLimiter.quota(address(`${id}`)))).toHaveLength(100_000);
    expect(ids.filter((id) => rateLimiter.quota(key(id)))).toHaveLength(100_100);
  });

  test("keys stay, however many addresses come", () => {
    const { rateLimiter } = setUp(10);
    request(rateLimiter, keys(40), 1);
    request(rateLimiter, addresses(2_000), 4);
    expect(remembered(rateLimiter, keys(40))).toHaveLength(40);
    expect(remembered(rateLimiter, addresses(2_000))).toHaveLength(10);
  });

  test("those with fewer requests are evicted first", () => {
    const { rateLimiter } = setUp(20);
    request(rateLimiter, [address("busy")], 5);
    request(rateLimiter, addresses(1_000), 1);
    expect(rateLimiter.quota(address("busy"))).toMatchObject({ day: { used: 5 } });
    const { rateLimiter: small } = setUp(2);
    for (const [i, subject] of addresses(4).entries()) request(small, [subject], 1 + (i % 3));
    expect(remembered(small, addresses(4))).toEqual(addresses(4).slice(2));
  });

  test("expired ones are evicted before all others", () => {
    const { rateLimiter, clock } = setUp(20);
    request(rateLimiter, addresses(20), 3);
    clock.time += 86_400_000;
    const recent = [...addresses(1), address("1"), address("2")];
    request(rateLimiter, recent, 1);
    expect(remembered(rateLimiter, recent)).toEqual(recent);
  });

  test("a start restores every key and as many addresses as fit", () => {
    const { rateLimiter: earlier, clock } = setUp(30);
    const subjects = [...keys(30), ...addresses(30)];
    request(earlier, subjects, 1);
    const quotaStore = new MapQuotaStore();
    quotaStore.save(subjects.map((subject) => [subject, earlier.quota(subject)]));
    const rateLimiter = new MemoryRateLimiter({
      clock,
      ban: () => DEFAULT_BAN,
      maxAddresses: 10,
      quotaStore,
    });
    expect(remembered(rateLimiter, keys(30))).toHaveLength(30);
    expect(remembered(rateLimiter, addresses(30))).toHaveLength(10);
    expect(rateLimiter.restoredBans).toEqual([]);
  });

  test("addresses at their limit stay at it while 10,000 others send a request each", () => {
    const { rateLimiter } = setUp(100);
    const limited = Array.from({ length: 15 }, (_, i) => address(`192.0.2.${i}`));
    request(rateLimiter, limited, 6);
    request(rateLimiter, addresses(10_000), 1);
    for (const subject of limited)
      expect(rateLimiter.decide(subject, LIMITS)).toMatchObject({ outcome: "limited" });
  });
});
