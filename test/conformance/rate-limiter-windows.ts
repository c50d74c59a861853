import { expect } from "bun:test";
import { address, key } from "../subjects.ts";
import { ADDRESS, all, KEY, OTHER_KEY, second, type TestCase } from "./rate-limiter-fixture.ts";

export function testWindows(test: TestCase): void {
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

  test("the next window opens with the first request after the last one closed", async (limiter) => {
    await limiter.decide();
    limiter.advance(180_007);
    await limiter.decides({ remaining: 59, resetAt: second(limiter.now() + 60_000) });
  });

  test("an exhausted day rejects until it closes, whatever the minute has remaining", async (limiter) => {
    const limits = { perMinute: 2, perDay: 3 };
    await limiter.decideTimes(2, limits);
    limiter.advance(60_000);
    expect(await limiter.decideTimes(2, limits)).toEqual(["allowed", "limited"]);
    limiter.advance(86_339_999);
    await limiter.decides({ outcome: "limited", limit: 3, retryAfter: 1 }, limits);
    limiter.advance(1);
    await limiter.decides({ outcome: "allowed" }, limits);
  });

  test("a request rejected by the minute does not count in the day", async (limiter) => {
    const limits = { perMinute: 2, perDay: 4 };
    expect(await limiter.decideTimes(5, limits)).toEqual([...all(2, "allowed"), ...all(3, "limited")]);
    limiter.advance(60_000);
    expect(await limiter.decideTimes(2, limits)).toEqual(all(2, "allowed"));
  });

  test("a request rejected by the day does not count in the minute, and does not open it", async (limiter) => {
    const limits = { perMinute: 5, perDay: 1 };
    await limiter.decide(limits);
    limiter.advance(60_000);
    await limiter.decide(limits);
    expect(await limiter.quota()).toMatchObject({ minute: { used: 0 }, day: { used: 1 } });
    limiter.advance(86_340_000);
    await limiter.decides(
      { remaining: 4, resetAt: second(limiter.now() + 60_000) },
      { perMinute: 5, perDay: 9 },
    );
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
}

export function testHeaders(test: TestCase): void {
  test("an allowed request shows the requests remaining in the minute, and retryAfter 0", async (limiter) => {
    const resetAt = second(limiter.now() + 60_000);
    const allowed = { outcome: "allowed", limit: 60, resetAt, retryAfter: 0 } as const;
    expect(await limiter.decide()).toMatchObject({ ...allowed, remaining: 59 });
    limiter.advance(500);
    expect(await limiter.decide()).toMatchObject({ ...allowed, remaining: 58 });
  });

  test("the headers describe the window with fewer requests remaining", async (limiter) => {
    const dayEnds = second(limiter.now() + 86_400_000);
    const limits = { perMinute: 3, perDay: 4 };
    const day = { limit: 4, resetAt: dayEnds };
    await limiter.decides({ limit: 3, remaining: 2 }, limits);
    limiter.advance(60_000);
    await limiter.decides({ ...day, remaining: 2 }, limits);
    await limiter.decides({ ...day, remaining: 1 }, limits);
  });

  test("a decision has both windows, each after the request", async (limiter) => {
    const limits = { perMinute: 3, perDay: 5 };
    const day = { limit: 5, resetAt: second(limiter.now() + 86_400_000) };
    await limiter.decide(limits);
    limiter.advance(70_000);
    const minute = { limit: 3, resetAt: second(limiter.now() + 60_000) };
    const after = (minuteLeft: number, dayLeft: number) => ({
      minute: { ...minute, remaining: minuteLeft },
      day: { ...day, remaining: dayLeft },
    });
    expect(await limiter.decide(limits)).toMatchObject(after(2, 3));
    expect(await Promise.all([limiter.decide(limits), limiter.decide(limits)])).toMatchObject([
      after(1, 2),
      after(0, 1),
    ]);
    expect(await limiter.decide(limits)).toMatchObject({ outcome: "limited", ...after(0, 1) });
  });

  test("on a tie the headers describe the longer window", async (limiter) => {
    const resetAt = second(limiter.now() + 86_400_000);
    await limiter.decides({ limit: 9, remaining: 8, resetAt }, { perMinute: 9, perDay: 9 });
  });

  test("resetAt is the second at which the window closes; a whole second is not rounded up", async (limiter) => {
    limiter.advance(877);
    expect(limiter.now() % 1000).toBe(0);
    await limiter.decides({ resetAt: limiter.now() / 1000 + 60 });
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
      expect(await limiter.decide()).toMatchObject(limited);
      limiter.advance(retryAfter * 1000);
      await limiter.decides({ outcome: "allowed" });
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
    await limiter.decides({ outcome: "allowed" }, limits);
  });
}
