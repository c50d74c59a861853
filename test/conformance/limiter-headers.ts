import { expect } from "bun:test";
import { DAY_MS, MINUTE_MS } from "../../src/domain/rate-limit.ts";
import { second, type Promises } from "./limiter-trial.ts";

export function headers(promise: Promises): void {
  promise("an allowed request is told the minute it has left, and to wait for nothing", async (trial) => {
    const resetAt = second(trial.now() + MINUTE_MS);
    expect(await trial.decide()).toEqual({
      outcome: "allowed",
      limit: 60,
      remaining: 59,
      resetAt,
      retryAfter: 0,
    });
    trial.advance(500);
    expect(await trial.decide()).toEqual({
      outcome: "allowed",
      limit: 60,
      remaining: 58,
      resetAt,
      retryAfter: 0,
    });
  });

  promise("the window with fewer requests left is described", async (trial) => {
    const dayEnds = second(trial.now() + DAY_MS);
    const limits = { perMinute: 3, perDay: 4 };
    const day = { limit: 4, resetAt: dayEnds };
    expect(await trial.decide(limits)).toMatchObject({ limit: 3, remaining: 2 });
    trial.advance(MINUTE_MS);
    expect(await trial.decide(limits)).toMatchObject({ ...day, remaining: 2 });
    expect(await trial.decide(limits)).toMatchObject({ ...day, remaining: 1 });
  });

  promise("on a tie the longer window is described", async (trial) => {
    const resetAt = second(trial.now() + DAY_MS);
    expect(await trial.decide({ perMinute: 9, perDay: 9 })).toMatchObject({
      limit: 9,
      remaining: 8,
      resetAt,
    });
  });

  promise(
    "the reset is the second at which the window closes, rounded up only if it must be",
    async (trial) => {
      trial.advance(877);
      expect(trial.now() % 1000).toBe(0);
      expect(await trial.decide()).toMatchObject({ resetAt: trial.now() / 1000 + 60 });
    },
  );

  promise("a refused request has nothing left, and is told the reset of what refused it", async (trial) => {
    const resetAt = second(trial.now() + MINUTE_MS);
    await trial.times(60);
    expect(await trial.decide()).toEqual({
      outcome: "limited",
      limit: 60,
      remaining: 0,
      resetAt,
      retryAfter: 60,
    });
  });

  for (const [after, retryAfter] of [
    [0, 60],
    [1, 60],
    [999, 60],
    [1_000, 59],
    [58_999, 2],
    [59_000, 1],
    [59_999, 1],
  ] as const) {
    promise(
      `Retry-After ${after} ms into a spent minute is ${retryAfter}, and waiting that long works`,
      async (trial) => {
        await trial.times(60);
        trial.advance(after);
        expect(await trial.decide()).toMatchObject({ outcome: "limited", retryAfter });
        trial.advance(retryAfter * 1000);
        expect(await trial.decide()).toMatchObject({ outcome: "allowed" });
      },
    );
  }

  promise(
    "Retry-After is the longest wait among spent windows, even if the day closes before the minute",
    async (trial) => {
      const limits = { perMinute: 2, perDay: 3 };
      const dayEnds = second(trial.now() + DAY_MS);
      await trial.decide(limits);
      trial.advance(DAY_MS - 10_000);
      await trial.times(2, limits);
      const refused = await trial.decide(limits);
      expect(refused).toMatchObject({ outcome: "limited", limit: 3, resetAt: dayEnds, retryAfter: 60 });
      trial.advance(refused.retryAfter * 1000);
      expect(await trial.decide(limits)).toMatchObject({ outcome: "allowed" });
    },
  );
}
