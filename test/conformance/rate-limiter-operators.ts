import { expect } from "bun:test";
import type { Limits } from "../../src/domain/rate-limit.ts";
import { ADDRESS, all, second, type TestCase } from "./rate-limiter-fixture.ts";

export function testOperators(test: TestCase): void {
  const PRO: Limits = { perMinute: 300, perDay: 10_000 };

  test("a larger plan keeps the counts", async (limiter) => {
    await limiter.decideTimes(61);
    expect(await limiter.decide(PRO)).toMatchObject({ outcome: "allowed", limit: 300, remaining: 239 });
  });

  test("a smaller plan keeps the counts, and remaining is never below 0", async (limiter) => {
    await limiter.decideTimes(100, PRO);
    expect(await limiter.decide()).toMatchObject({
      outcome: "limited",
      limit: 60,
      remaining: 0,
      retryAfter: 60,
    });
  });

  test("a larger plan does not end a ban", async (limiter) => {
    await limiter.earnBan();
    expect(await limiter.decide(PRO)).toMatchObject({ outcome: "banned", limit: 300, remaining: 0 });
  });

  test("an unban ends the ban and clears its strikes, and gives no quota back", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(5);
    await limiter.unban(0);
    expect(await limiter.decide()).toMatchObject({ outcome: "limited" });
    limiter.advance(1_001);
    expect(await limiter.decideTimes(10)).toEqual([...all(9, "limited"), "banned"]);
  });

  test("an unban clears strikes that did not lead to a ban yet", async (limiter) => {
    await limiter.exhaust();
    await limiter.decideTimes(9);
    await limiter.unban(0);
    expect(await limiter.decideTimes(30)).toEqual(all(30, "limited"));
  });

  test("an unban of ten seconds ago ends a ban of then, and not one of a millisecond later", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(9_999);
    await limiter.unban(10_000);
    expect(await limiter.decide()).toMatchObject({ outcome: "banned" });
    limiter.advance(1);
    await limiter.unban(10_000);
    expect(await limiter.decide()).toMatchObject({ outcome: "limited" });
  });

  test("an unban of a subject without usage does nothing", async (limiter) => {
    await limiter.unban(0);
    expect(await limiter.usage()).toBeUndefined();
  });

  test("peek shows what the next request of an address would get, and counts nothing", async (limiter) => {
    const full = { outcome: "allowed", limit: 2, remaining: 2, retryAfter: 0 } as const;
    const limits = { perMinute: 2, perDay: 3 };
    expect(limiter.peek(limits)).toEqual({ ...full, resetAt: second(limiter.now() + 60_000) });
    expect(await limiter.usage(ADDRESS)).toBeUndefined();

    const resetAt = second(limiter.now() + 60_000);
    await limiter.decide(limits, ADDRESS);
    limiter.advance(1_000);
    for (let i = 0; i < 5; i++) expect(limiter.peek(limits)).toEqual({ ...full, remaining: 1, resetAt });
    await limiter.decide(limits, ADDRESS);
    expect(limiter.peek(limits)).toEqual({
      outcome: "limited",
      limit: 2,
      remaining: 0,
      resetAt,
      retryAfter: 59,
    });
    limiter.advance(59_000);
    expect(limiter.peek(limits)).toMatchObject({ outcome: "allowed", limit: 3, remaining: 1 });
    expect(await limiter.usage(ADDRESS)).toMatchObject({ day: { used: 2 } });
  });

  test("usage shows both windows, strikes and ban, and counts nothing", async (limiter) => {
    expect(await limiter.usage()).toBeUndefined();
    const openedAt = limiter.now();
    await limiter.exhaust();
    const firstRejectedAt = openedAt;
    await limiter.decideTimes(3);
    const minute = { openedAt, used: 60, firstRejectedAt, strikes: 3 };
    for (let i = 0; i < 20; i++)
      expect(await limiter.usage()).toMatchObject({ minute, day: { openedAt, used: 60 } });
    await limiter.decideTimes(7);
    expect(await limiter.usage()).toMatchObject({
      minute: { used: 60, strikes: 0 },
      bannedAt: limiter.now(),
      bannedUntil: limiter.now() + 300_000,
    });
  });

  test("usage shows open windows only, and is undefined once both are closed", async (limiter) => {
    await limiter.decide();
    limiter.advance(60_000);
    expect(await limiter.usage()).toMatchObject({ minute: { used: 0 }, day: { used: 1 } });
    limiter.advance(86_340_000);
    expect(await limiter.usage()).toBeUndefined();
  });
}
