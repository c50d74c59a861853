import { expect } from "bun:test";
import { key } from "../subjects.ts";
import { all, FREE, KEY, OTHER_KEY, second, type TestCase } from "./rate-limiter-fixture.ts";

export function testClockAndRestart(test: TestCase): void {
  for (const back of [1, 34_560_000_000]) {
    test(`a clock set back by ${back} ms gives no quota twice and makes no window longer`, async (limiter) => {
      await limiter.decideTimes(60);
      limiter.advance(-back);
      const resetAt = second(limiter.now() + 60_000);
      expect(await limiter.decide()).toMatchObject({
        outcome: "limited",
        remaining: 0,
        resetAt,
        retryAfter: 60,
      });
      limiter.advance(60_000);
      expect(await limiter.decide()).toMatchObject({ outcome: "allowed", remaining: 59 });
      expect(await limiter.usage()).toMatchObject({ day: { used: 61 } });
    });
  }

  test("a clock set forward by a day closes both windows; set back again it gives no quota twice", async (limiter) => {
    await limiter.decideTimes(60);
    limiter.advance(86_400_000);
    expect(await limiter.decideTimes(61)).toEqual([...all(60, "allowed"), "limited"]);
    limiter.advance(-86_400_000);
    expect(await limiter.decide()).toMatchObject({ outcome: "limited", retryAfter: 60 });
  });

  test("a clock set back makes no ban longer", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(-86_400_000);
    expect(await limiter.decide()).toMatchObject({ outcome: "banned", retryAfter: 300 });
    limiter.advance(300_000);
    expect(await limiter.decide()).toMatchObject({ outcome: "allowed" });
  });

  test("counts, strikes and bans survive a restart exactly", async (limiter) => {
    await limiter.decideTimes(42);
    await limiter.exhaust(FREE, OTHER_KEY);
    await limiter.decideTimes(9, FREE, OTHER_KEY);
    await limiter.earnBan(FREE, key(3));
    const usages = () => Promise.all([KEY, OTHER_KEY, key(3)].map(limiter.usage));
    const before = await usages();
    await limiter.restart();
    expect(await usages()).toEqual(before);
    expect(await limiter.decide()).toMatchObject({ outcome: "allowed", remaining: 17 });
    expect(await limiter.decide(FREE, OTHER_KEY)).toMatchObject({ outcome: "banned" });
    expect(await limiter.decide(FREE, key(3))).toMatchObject({ outcome: "banned", retryAfter: 300 });
  });

  test("a restart after the clock was set back gives no quota twice", async (limiter) => {
    await limiter.decideTimes(60);
    limiter.advance(-86_400_000);
    await limiter.restart();
    expect(await limiter.decide()).toMatchObject({ outcome: "limited", retryAfter: 60 });
  });

  test("windows and bans that end between stop and start do not come back", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(86_400_000);
    await limiter.restart();
    expect(await limiter.usage()).toMatchObject({ minute: { used: 0 }, day: { used: 0 }, bannedUntil: -1 });
    expect(await limiter.decideTimes(60)).toEqual(all(60, "allowed"));
  });
}
