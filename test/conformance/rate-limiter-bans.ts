import { expect } from "bun:test";
import { address } from "../subjects.ts";
import { ADDRESS, all, FREE, type NewBan, OTHER_KEY, second, type TestCase } from "./rate-limiter-fixture.ts";

export function testBans(test: TestCase): void {
  const banned = { outcome: "banned", remaining: 0 } as const;

  test("requests rejected within one second of the first rejection are no strikes", async (limiter) => {
    await limiter.decideTimes(60);
    expect(await limiter.decideTimes(100)).toEqual(all(100, "limited"));
    limiter.advance(1_000);
    expect(await limiter.decideTimes(100)).toEqual(all(100, "limited"));
    expect(await limiter.quota()).toMatchObject({ minute: { strikes: 0 } });
  });

  test("the grace period begins with the first rejection, not with the last allowed request", async (limiter) => {
    await limiter.decideTimes(60);
    limiter.advance(30_000);
    expect(await limiter.decideTimes(100)).toEqual(all(100, "limited"));
    expect(await limiter.quota()).toMatchObject({ minute: { strikes: 0 } });
  });

  test("requests rejected within one second of a strike are no strikes", async (limiter) => {
    await limiter.exhaust();
    await limiter.strikes(1);
    for (const ms of [0, 500, 500]) {
      limiter.advance(ms);
      expect(await limiter.decideTimes(100)).toEqual(all(100, "limited"));
    }
    expect(await limiter.quota()).toMatchObject({ minute: { strikes: 1 } });
    limiter.advance(1);
    expect(await limiter.decideTimes(100)).toEqual(all(100, "limited"));
    expect(await limiter.quota()).toMatchObject({ minute: { strikes: 2 } });
  });

  test("a client that sends ten requests a second is banned within eleven seconds", async (limiter) => {
    await limiter.exhaust();
    const since = limiter.now();
    while ((await limiter.decide()).outcome === "limited") limiter.advance(100);
    expect(limiter.now() - since).toBe(11_000);
  });

  test("a decision has the strikes of both windows", async (limiter) => {
    const limits = { perMinute: 1, perDay: 9 };
    const strikes = async () => {
      const { minute, day } = await limiter.decide(limits);
      return [minute.strikes, day.strikes];
    };
    await limiter.decide(limits);
    expect(await strikes()).toEqual([0, 0]);
    await limiter.strikes(1, limits);
    expect(await strikes()).toEqual([1, 0]);
    limiter.advance(60_000);
    expect(await strikes()).toEqual([0, 0]);
  });

  test("nine strikes are limited, and the tenth is banned for 300 seconds", async (limiter) => {
    await limiter.exhaust();
    expect(await limiter.strikes(9)).toEqual(all(9, "limited"));
    limiter.advance(1_001);
    expect(await limiter.decide()).toMatchObject({
      outcome: "banned",
      limit: 60,
      remaining: 0,
      resetAt: second(limiter.now() + 300_000),
      retryAfter: 300,
    });
  });

  test("requests during a ban neither extend it nor count", async (limiter) => {
    await limiter.earnBan();
    const resetAt = second(limiter.now() + 300_000);
    for (let i = 0; i < 29; i++) {
      limiter.advance(10_000);
      await limiter.decides({ ...banned, resetAt, retryAfter: 300 - (i + 1) * 10 });
    }
    limiter.advance(9_999);
    await limiter.decides({ ...banned, resetAt, retryAfter: 1 });
    limiter.advance(1);
    await limiter.decides({ outcome: "allowed", remaining: 59 });
    expect(await limiter.quota()).toMatchObject({ day: { used: 61 }, minute: { strikes: 0 } });
  });

  test("strikes end when their window closes, and a new grace period begins", async (limiter) => {
    await limiter.exhaust();
    await limiter.strikes(9);
    limiter.advance(60_000);
    expect(await limiter.decideTimes(60)).toEqual(all(60, "allowed"));
    expect(await limiter.decideTimes(20)).toEqual(all(20, "limited"));
    expect(await limiter.strikes(10)).toEqual([...all(9, "limited"), "banned"]);
  });

  test("strikes of the day outlast the minute", async (limiter) => {
    const limits = { perMinute: 5, perDay: 2 };
    await limiter.exhaust(limits);
    await limiter.strikes(5, limits);
    limiter.advance(600_000);
    expect(await limiter.strikes(5, limits)).toEqual([...all(4, "limited"), "banned"]);
  });

  test("an address is never banned", async (limiter) => {
    await limiter.exhaust(FREE, ADDRESS);
    expect(await limiter.strikes(50, FREE, ADDRESS)).toEqual(all(50, "limited"));
  });

  test("a ban holds for its key alone", async (limiter) => {
    await limiter.earnBan();
    await limiter.decides({ outcome: "allowed", remaining: 59 }, FREE, OTHER_KEY);
    await limiter.decides({ outcome: "allowed", remaining: 59 }, FREE, address("1"));
  });

  test(
    "strikes, grace period and length are settings; retryAfter is rounded up",
    async (limiter) => {
      await limiter.decideTimes(61);
      limiter.advance(1);
      await limiter.decides({ outcome: "limited" });
      limiter.advance(1);
      await limiter.decides({ ...banned, retryAfter: 2, resetAt: second(limiter.now() + 1_500) });
      limiter.advance(1_500);
      await limiter.decides({ outcome: "limited" });
    },
    { strikes: 2, graceMs: 0, lengthMs: 1_500, maxLengthMs: 1_500 },
  );
}

/** From the beginning of `earnBan` to the ban. */
const EARNING_MS = 10_010;

export function testRepeatedBans(test: TestCase): void {
  test("bans that follow each other last 5, 10, 20, 40 and 40 minutes", async (limiter) => {
    for (const seconds of [300, 600, 1_200, 2_400, 2_400]) {
      expect(await limiter.earnBanOfSeconds()).toBe(seconds);
      limiter.advance(seconds * 1_000 - 1);
      await limiter.decides({ outcome: "banned", retryAfter: 1 });
      limiter.advance(1);
      await limiter.decides({ outcome: "allowed" });
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
    await limiter.decides({ outcome: "allowed" });
    limiter.advance(-200_000);
    await limiter.decides({ outcome: "allowed" });
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
    await limiter.strikes(9);
    expect(limiter.bans).toEqual([]);
    limiter.advance(1_001);
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
