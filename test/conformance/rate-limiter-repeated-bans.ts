import { expect } from "bun:test";
import type { NewBan, TestCase } from "./rate-limiter-fixture.ts";

/** From the beginning of `earnBan` to the ban. */
const EARNING_MS = 1_001;

export function testRepeatedBans(test: TestCase): void {
  test("bans that follow each other last 5, 10, 20, 40 and 40 minutes", async (limiter) => {
    for (const seconds of [300, 600, 1_200, 2_400, 2_400]) {
      expect(await limiter.earnBanOfSeconds()).toBe(seconds);
      limiter.advance(seconds * 1_000 - 1);
      expect(await limiter.decide()).toMatchObject({ outcome: "banned", retryAfter: 1 });
      limiter.advance(1);
      expect(await limiter.decide()).toMatchObject({ outcome: "allowed" });
    }
  });

  test("a ban is longer if it comes less than 24 hours after the end of the last one", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(300_000 + 86_400_000 - EARNING_MS - 1);
    expect(await limiter.earnBanOfSeconds()).toBe(600);
    limiter.advance(600_000 + 86_400_000 - EARNING_MS);
    expect(await limiter.earnBanOfSeconds()).toBe(300);
  });

  test("an unban during a ban starts over with the first length", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(300_000);
    expect(await limiter.earnBanOfSeconds()).toBe(600);
    await limiter.unban(0);
    limiter.advance(60_000);
    expect(await limiter.earnBanOfSeconds()).toBe(300);
  });

  test("an unban after a ban starts over too, unless it is older than that ban", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(300_000);
    await limiter.unban(300_001);
    expect(await limiter.earnBanOfSeconds()).toBe(600);
    limiter.advance(600_000);
    await limiter.unban(600_000);
    expect(await limiter.earnBanOfSeconds()).toBe(300);
  });

  test("a restart does not start over, during a ban or after it", async (limiter) => {
    await limiter.earnBan();
    await limiter.restart();
    limiter.advance(300_000);
    expect(await limiter.earnBanOfSeconds()).toBe(600);
    limiter.advance(600_000);
    await limiter.decide();
    await limiter.restart();
    expect(await limiter.earnBanOfSeconds()).toBe(1_200);
  });

  test("a clock set back after a ban neither bans again nor starts over", async (limiter) => {
    await limiter.earnBan();
    limiter.advance(300_000);
    expect(await limiter.decide()).toMatchObject({ outcome: "allowed" });
    limiter.advance(-200_000);
    expect(await limiter.decide()).toMatchObject({ outcome: "allowed" });
    expect(await limiter.earnBanOfSeconds()).toBe(600);
  });

  test(
    "without a longer maximum every ban has the same length",
    async (limiter) => {
      for (let i = 0; i < 3; i++) {
        expect(await limiter.earnBanOfSeconds()).toBe(300);
        limiter.advance(300_000);
      }
    },
    { strikes: 10, graceMs: 1_000, lengthMs: 300_000, maxLengthMs: 300_000 },
  );

  test("onBan is called once for each new ban, with its times", async (limiter) => {
    await limiter.exhaust();
    await limiter.decideTimes(9);
    expect(limiter.bans).toEqual([]);
    await limiter.decideTimes(20);
    const first: NewBan = [1, limiter.now(), limiter.now() + 300_000];
    expect(limiter.bans).toEqual([first]);
    limiter.advance(-50_000);
    await limiter.decideTimes(3);
    await limiter.restart();
    await limiter.decideTimes(3);
    expect(limiter.bans).toEqual([first]);
    limiter.advance(300_000);
    await limiter.earnBan();
    expect(limiter.bans).toEqual([first, [1, limiter.now(), limiter.now() + 600_000]]);
  });
}
