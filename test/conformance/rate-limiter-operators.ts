import { expect } from "bun:test";
import type { Limits } from "../../src/domain/rate-limit.ts";
import { key } from "../subjects.ts";
import { ADDRESS, all, FREE, KEY, OTHER_KEY, second, type TestCase } from "./rate-limiter-fixture.ts";

export function testOperators(test: TestCase): void {
  const PRO: Limits = { perMinute: 300, perDay: 10_000 };

  test("a larger plan keeps the counts", async (limiter) => {
    await limiter.decideTimes(61);
    await limiter.decides({ outcome: "allowed", limit: 300, remaining: 239 }, PRO);
  });

  test("a smaller plan keeps the counts, and remaining is never below 0", async (limiter) => {
    await limiter.decideTimes(100, PRO);
    await limiter.decides({ outcome: "limited", limit: 60, remaining: 0, retryAfter: 60 });
  });

  test("a larger plan does not end a ban", async (limiter) => {
    await limiter.earnBan();
    await limiter.decides({ outcome: "banned", limit: 300, remaining: 0 }, PRO);
  });

  test("an unban ends the ban and clears its strikes, and gives no quota back", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(5);
    await limiter.unban(0);
    await limiter.decides({ outcome: "limited" });
    expect(await limiter.strikes(10)).toEqual([...all(9, "limited"), "banned"]);
  });

  test("an unban clears strikes that did not lead to a ban yet", async (limiter) => {
    await limiter.exhaust();
    await limiter.strikes(9);
    await limiter.unban(0);
    limiter.advance(1_001);
    await limiter.decides({ outcome: "limited" });
    expect(await limiter.quota()).toMatchObject({ minute: { strikes: 0 } });
  });

  test("an unban that comes late clears the strikes from before it, although others followed", async (limiter) => {
    await limiter.exhaust();
    await limiter.strikes(9);
    await limiter.unban(500);
    expect(await limiter.quota()).toMatchObject({ minute: { strikes: 0 } });
  });

  test("an unban leaves the strikes of a window that opened after it", async (limiter) => {
    await limiter.exhaust();
    await limiter.strikes(3);
    await limiter.unban(3 * 1_001 + 1);
    expect(await limiter.quota()).toMatchObject({ minute: { strikes: 3 } });
  });

  test("an unban of ten seconds ago ends a ban of then, and not one of a millisecond later", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(9_999);
    await limiter.unban(10_000);
    await limiter.decides({ outcome: "banned" });
    limiter.advance(1);
    await limiter.unban(10_000);
    await limiter.decides({ outcome: "limited" });
  });

  test("bannedKeys has the keys that are banned now, unless another process counts", async (limiter) => {
    await limiter.earnBan();
    await limiter.decideTimes(61, FREE, OTHER_KEY);
    expect(limiter.bannedKeys()).toBeOneOf([[1], undefined]);
    await limiter.unban(0);
    expect(limiter.bannedKeys()).toBeOneOf([[], undefined]);
  });

  test("an unban of a subject without quota does nothing", async (limiter) => {
    await limiter.unban(0);
    expect(await limiter.quota()).toBeUndefined();
  });

  test("peek shows what the next request of an address would get, and counts nothing", async (limiter) => {
    const full = { outcome: "allowed", limit: 2, remaining: 2, retryAfter: 0 } as const;
    const limits = { perMinute: 2, perDay: 3 };
    expect(limiter.peek(limits)).toMatchObject({ ...full, resetAt: second(limiter.now() + 60_000) });
    expect(await limiter.quota(ADDRESS)).toBeUndefined();

    const resetAt = second(limiter.now() + 60_000);
    await limiter.decide(limits, ADDRESS);
    limiter.advance(1_000);
    for (let i = 0; i < 5; i++)
      expect(limiter.peek(limits)).toMatchObject({ ...full, remaining: 1, resetAt });
    await limiter.decide(limits, ADDRESS);
    expect(limiter.peek(limits)).toMatchObject({
      outcome: "limited",
      limit: 2,
      remaining: 0,
      resetAt,
      retryAfter: 59,
    });
    limiter.advance(59_000);
    expect(limiter.peek(limits)).toMatchObject({ outcome: "allowed", limit: 3, remaining: 1 });
    expect(await limiter.quota(ADDRESS)).toMatchObject({ day: { used: 2 } });
  });

  test("quota shows both windows, strikes and ban, and counts nothing", async (limiter) => {
    expect(await limiter.quota()).toBeUndefined();
    const openedAt = limiter.now();
    await limiter.exhaust();
    await limiter.strikes(3);
    const graceBeganAt = limiter.now();
    const minute = { openedAt, used: 60, graceBeganAt, strikes: 3 };
    for (let i = 0; i < 20; i++)
      expect(await limiter.quota()).toMatchObject({ minute, day: { openedAt, used: 60 } });
    await limiter.strikes(7);
    expect(await limiter.quota()).toMatchObject({
      minute: { used: 60, strikes: 0 },
      bannedAt: limiter.now(),
      bannedUntil: limiter.now() + 300_000,
    });
  });

  test("quota shows open windows only, and is undefined once both are closed", async (limiter) => {
    await limiter.decide();
    limiter.advance(60_000);
    expect(await limiter.quota()).toMatchObject({ minute: { used: 0 }, day: { used: 1 } });
    limiter.advance(86_340_000);
    expect(await limiter.quota()).toBeUndefined();
  });
}

export function testClockAndRestart(test: TestCase): void {
  for (const back of [1, 34_560_000_000]) {
    test(`a clock set back by ${back} ms gives no quota twice and makes no window longer`, async (limiter) => {
      await limiter.decideTimes(60);
      limiter.advance(-back);
      const resetAt = second(limiter.now() + 60_000);
      await limiter.decides({ outcome: "limited", remaining: 0, resetAt, retryAfter: 60 });
      limiter.advance(60_000);
      await limiter.decides({ outcome: "allowed", remaining: 59 });
      expect(await limiter.quota()).toMatchObject({ day: { used: 61 } });
    });
  }

  test("a clock set forward by a day closes both windows; set back again it gives no quota twice", async (limiter) => {
    await limiter.decideTimes(60);
    limiter.advance(86_400_000);
    expect(await limiter.decideTimes(61)).toEqual([...all(60, "allowed"), "limited"]);
    limiter.advance(-86_400_000);
    await limiter.decides({ outcome: "limited", retryAfter: 60 });
  });

  test("a clock set back makes no ban longer", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(-86_400_000);
    await limiter.decides({ outcome: "banned", retryAfter: 300 });
    limiter.advance(300_000);
    await limiter.decides({ outcome: "allowed" });
  });

  test("counts, strikes and bans survive a restart exactly", async (limiter) => {
    await limiter.decideTimes(42);
    await limiter.exhaust(FREE, OTHER_KEY);
    await limiter.strikes(9, FREE, OTHER_KEY);
    await limiter.earnBan(FREE, key(3));
    const quotas = () => Promise.all([KEY, OTHER_KEY, key(3)].map(limiter.quota));
    const before = await quotas();
    await limiter.restart();
    expect(await quotas()).toEqual(before);
    await limiter.decides({ outcome: "allowed", remaining: 17 });
    await limiter.decides({ outcome: "banned" }, FREE, OTHER_KEY);
    await limiter.decides({ outcome: "banned", retryAfter: 300 }, FREE, key(3));
  });

  test("a restart after the clock was set back gives no quota twice", async (limiter) => {
    await limiter.decideTimes(60);
    limiter.advance(-86_400_000);
    await limiter.restart();
    await limiter.decides({ outcome: "limited", retryAfter: 60 });
  });

  test("windows and bans that end between stop and start do not come back", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(86_400_000);
    await limiter.restart();
    expect(await limiter.quota()).toMatchObject({
      minute: { used: 0 },
      day: { used: 0 },
      lastBanMs: 300_000,
    });
    expect(await limiter.decideTimes(60)).toEqual(all(60, "allowed"));
  });
}
