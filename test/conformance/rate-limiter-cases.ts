import { expect } from "bun:test";
import { NEVER } from "../../src/domain/rate-limit.ts";
import { address, key } from "../subjects.ts";
import { ADDRESS, all, FREE, KEY, OTHER_KEY, second, type TestCase } from "./rate-limiter-fixture.ts";

/** Numbers of the documentation, requests at once, addresses, and a clock that is set back. The model has the rest. */
export function rateLimiterCases(test: TestCase): void {
  test("of 61 requests within a minute of the first, to the millisecond, exactly 60 are allowed", async (limiter) => {
    const first = await limiter.decideTimes(30);
    limiter.advance(59_999);
    expect([...first, ...(await limiter.decideTimes(31))]).toEqual([...all(60, "allowed"), "limited"]);
    limiter.advance(1);
    await limiter.decides({ outcome: "allowed", remaining: 59 });
  });

  test("requests at the same time are counted one by one", async (limiter) => {
    const decisions = await Promise.all(Array.from({ length: 200 }, () => limiter.decide()));
    const allowed = decisions.filter(({ outcome }) => outcome === "allowed");
    expect(new Set(allowed.map(({ remaining }) => remaining)).size).toBe(60);
    expect(allowed).toHaveLength(60);
  });

  test("subjects are counted apart, however alike their ids", async (limiter) => {
    const limits = { perMinute: 1, perDay: 9 };
    const long = "x".repeat(62);
    const subjects = [
      KEY,
      OTHER_KEY,
      ADDRESS,
      key(2_000_000),
      key(9_007_199_254_740_991),
      ...["1", "2000000", "key:1", long, `${long}y`].map(address),
    ];
    for (const subject of subjects) await limiter.decides({ outcome: "allowed" }, limits, subject);
    for (const subject of subjects) await limiter.decides({ outcome: "limited" }, limits, subject);
  });

  test("a client that sends ten requests a second is banned for 300 seconds within eleven", async (limiter) => {
    await limiter.exhaust();
    const since = limiter.now();
    while ((await limiter.decide()).outcome === "limited") limiter.advance(100);
    expect(limiter.now() - since).toBe(11_000);
    const banned = { outcome: "banned", limit: 60, remaining: 0, retryAfterSeconds: 300 } as const;
    await limiter.decides({ ...banned, resetAt: second(limiter.now() + 300_000) });
  });

  test("bans that follow each other last 5, 10, 20, 40 and 40 minutes", async (limiter) => {
    for (const seconds of [300, 600, 1_200, 2_400, 2_400]) {
      expect(await limiter.earnBanOfSeconds()).toBe(seconds);
      limiter.advance(seconds * 1_000 - 1);
      await limiter.decides({ outcome: "banned", retryAfterSeconds: 1 });
      limiter.advance(1);
      await limiter.decides({ outcome: "allowed" });
    }
  });

  test("an address is never banned", async (limiter) => {
    await limiter.exhaust(FREE, ADDRESS);
    expect(await limiter.strikes(50, FREE, ADDRESS)).toEqual(all(50, "limited"));
  });

  for (const back of [1, 34_560_000_000]) {
    test(`a clock set back by ${back} ms gives no quota twice and makes no window longer`, async (limiter) => {
      await limiter.decideTimes(60);
      limiter.advance(-back);
      const resetAt = second(limiter.now() + 60_000);
      await limiter.decides({ outcome: "limited", remaining: 0, resetAt, retryAfterSeconds: 60 });
      limiter.advance(60_000);
      await limiter.decides({ outcome: "allowed", remaining: 59 });
      expect(await limiter.quota()).toMatchObject({ day: { used: 61 } });
    });
  }

  test("a clock set back makes no ban longer", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(-86_400_000);
    await limiter.decides({ outcome: "banned", retryAfterSeconds: 300 });
    limiter.advance(300_000);
    await limiter.decides({ outcome: "allowed" });
  });

  test("an unban ends a ban that began later than a clock says that was set back", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(-86_400_000);
    await limiter.unban();
    await limiter.decides({ outcome: "limited" });
    expect(await limiter.quota()).toMatchObject({ bannedUntil: NEVER });
  });

  test("peek shows what the next request of an address would get, and counts nothing", async (limiter) => {
    const full = { outcome: "allowed", limit: 2, remaining: 2, retryAfterSeconds: 0 } as const;
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
      retryAfterSeconds: 59,
    });
    limiter.advance(59_000);
    expect(limiter.peek(limits)).toMatchObject({ outcome: "allowed", limit: 3, remaining: 1 });
    expect(await limiter.quota(ADDRESS)).toMatchObject({ day: { used: 2 } });
  });
}
