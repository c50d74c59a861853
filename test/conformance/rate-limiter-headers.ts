import { expect } from "bun:test";
import { second, type TestCase } from "./rate-limiter-fixture.ts";

export function testHeaders(test: TestCase): void {
  test("an allowed request shows the requests remaining in the minute, and retryAfter 0", async (limiter) => {
    const resetAt = second(limiter.now() + 60_000);
    expect(await limiter.decide()).toEqual({
      outcome: "allowed",
      limit: 60,
      remaining: 59,
      resetAt,
      retryAfter: 0,
    });
    limiter.advance(500);
    expect(await limiter.decide()).toEqual({
      outcome: "allowed",
      limit: 60,
      remaining: 58,
      resetAt,
      retryAfter: 0,
    });
  });

  test("the headers describe the window with fewer requests remaining", async (limiter) => {
    const dayEnds = second(limiter.now() + 86_400_000);
    const limits = { perMinute: 3, perDay: 4 };
    const day = { limit: 4, resetAt: dayEnds };
    expect(await limiter.decide(limits)).toMatchObject({ limit: 3, remaining: 2 });
    limiter.advance(60_000);
    expect(await limiter.decide(limits)).toMatchObject({ ...day, remaining: 2 });
    expect(await limiter.decide(limits)).toMatchObject({ ...day, remaining: 1 });
  });

  test("on a tie the headers describe the longer window", async (limiter) => {
    const resetAt = second(limiter.now() + 86_400_000);
    expect(await limiter.decide({ perMinute: 9, perDay: 9 })).toMatchObject({
      limit: 9,
      remaining: 8,
      resetAt,
    });
  });

  test("resetAt is the second at which the window closes; a whole second is not rounded up", async (limiter) => {
    limiter.advance(877);
    expect(limiter.now() % 1000).toBe(0);
    expect(await limiter.decide()).toMatchObject({ resetAt: limiter.now() / 1000 + 60 });
  });

  for (const [after, retryAfter] of [
    [0, 60],
    [1, 60],
    [1_000, 59],
    [59_999, 1],
  ] as const) {
    test(`retryAfter is ${retryAfter} at ${after} ms of an exhausted minute, and the request after it is allowed`, async (limiter) => {
      const resetAt = second(limiter.now() + 60_000);
      await limiter.decideTimes(60);
      limiter.advance(after);
      const limited = { outcome: "limited", limit: 60, remaining: 0, resetAt, retryAfter } as const;
      expect(await limiter.decide()).toEqual(limited);
      limiter.advance(retryAfter * 1000);
      expect(await limiter.decide()).toMatchObject({ outcome: "allowed" });
    });
  }

  test("retryAfter is the longest wait of the exhausted windows, also when the day closes before the minute", async (limiter) => {
    const limits = { perMinute: 2, perDay: 3 };
    const dayEnds = second(limiter.now() + 86_400_000);
    await limiter.decide(limits);
    limiter.advance(86_390_000);
    await limiter.decideTimes(2, limits);
    const rejected = await limiter.decide(limits);
    expect(rejected).toMatchObject({ outcome: "limited", limit: 3, resetAt: dayEnds, retryAfter: 60 });
    limiter.advance(rejected.retryAfter * 1000);
    expect(await limiter.decide(limits)).toMatchObject({ outcome: "allowed" });
  });
}
