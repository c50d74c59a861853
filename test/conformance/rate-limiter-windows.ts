import { expect } from "bun:test";
import { address, key } from "../subjects.ts";
import { ADDRESS, all, KEY, OTHER_KEY, second, type TestCase } from "./rate-limiter-fixture.ts";

export function testWindows(test: TestCase): void {
  test("of 61 requests within a minute of the first, to the millisecond, exactly 60 are allowed", async (limiter) => {
    const first = await limiter.decideTimes(30);
    limiter.advance(59_999);
    expect([...first, ...(await limiter.decideTimes(31))]).toEqual([...all(60, "allowed"), "limited"]);
    limiter.advance(1);
    expect(await limiter.decide()).toMatchObject({ outcome: "allowed", remaining: 59 });
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
    expect(await limiter.decide()).toMatchObject({ remaining: 59, resetAt: second(limiter.now() + 60_000) });
  });

  test("an exhausted day rejects until it closes, whatever the minute has remaining", async (limiter) => {
    const limits = { perMinute: 2, perDay: 3 };
    await limiter.decideTimes(2, limits);
    limiter.advance(60_000);
    expect(await limiter.decideTimes(2, limits)).toEqual(["allowed", "limited"]);
    limiter.advance(86_339_999);
    expect(await limiter.decide(limits)).toMatchObject({ outcome: "limited", limit: 3, retryAfter: 1 });
    limiter.advance(1);
    expect(await limiter.decide(limits)).toMatchObject({ outcome: "allowed" });
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
    expect(await limiter.usage()).toMatchObject({ minute: { used: 0 }, day: { used: 1 } });
    limiter.advance(86_340_000);
    expect(await limiter.decide({ perMinute: 5, perDay: 9 })).toMatchObject({
      remaining: 4,
      resetAt: second(limiter.now() + 60_000),
    });
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
    for (const subject of subjects)
      expect(await limiter.decide(limits, subject)).toMatchObject({ outcome: "allowed" });
    for (const subject of subjects)
      expect(await limiter.decide(limits, subject)).toMatchObject({ outcome: "limited" });
  });
}
