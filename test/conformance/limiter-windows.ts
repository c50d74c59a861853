import { expect } from "bun:test";
import { DAY_MS, MINUTE_MS, type Subject } from "../../src/domain/rate-limit.ts";
import { ADDRESS, all, KEY, OTHER, second, type Promises } from "./limiter-trial.ts";

export function windows(promise: Promises): void {
  promise("of 61 requests within a minute of the first exactly 60 are allowed", async (trial) => {
    const first = await trial.times(30);
    trial.advance(MINUTE_MS - 1);
    expect([...first, ...(await trial.times(31))]).toEqual([...all(60, "allowed"), "limited"]);
  });

  promise("requests that come at the same time are counted one by one", async (trial) => {
    const decisions = await Promise.all(Array.from({ length: 200 }, () => trial.decide()));
    const allowed = decisions.filter(({ outcome }) => outcome === "allowed");
    expect(new Set(allowed.map(({ remaining }) => remaining)).size).toBe(60);
    expect(allowed).toHaveLength(60);
  });

  promise(
    "a window closes its length after the request that opened it, to the millisecond",
    async (trial) => {
      await trial.times(60);
      trial.advance(MINUTE_MS - 1);
      expect(await trial.decide()).toMatchObject({ outcome: "limited" });
      trial.advance(1);
      expect(await trial.decide()).toMatchObject({ outcome: "allowed", remaining: 59 });
    },
  );

  promise("the next window opens with the first request that finds none open", async (trial) => {
    await trial.decide();
    trial.advance(3 * MINUTE_MS + 7);
    expect(await trial.decide()).toMatchObject({ remaining: 59, resetAt: second(trial.now() + MINUTE_MS) });
  });

  promise("the day refuses although the minute has room, until the day closes", async (trial) => {
    const limits = { perMinute: 2, perDay: 3 };
    await trial.times(2, limits);
    trial.advance(MINUTE_MS);
    expect(await trial.times(2, limits)).toEqual(["allowed", "limited"]);
    trial.advance(DAY_MS - MINUTE_MS - 1);
    expect(await trial.decide(limits)).toMatchObject({ outcome: "limited", limit: 3, retryAfter: 1 });
    trial.advance(1);
    expect(await trial.decide(limits)).toMatchObject({ outcome: "allowed" });
  });

  promise("a request refused by the minute costs nothing of the day", async (trial) => {
    const limits = { perMinute: 2, perDay: 4 };
    expect(await trial.times(5, limits)).toEqual([...all(2, "allowed"), ...all(3, "limited")]);
    trial.advance(MINUTE_MS);
    expect(await trial.times(2, limits)).toEqual(all(2, "allowed"));
  });

  promise("a request refused by the day costs nothing of the minute, and opens none", async (trial) => {
    const limits = { perMinute: 5, perDay: 1 };
    await trial.decide(limits);
    trial.advance(MINUTE_MS);
    await trial.decide(limits);
    expect(await trial.usage()).toMatchObject({ minute: { used: 0 }, day: { used: 1 } });
    trial.advance(DAY_MS - MINUTE_MS);
    expect(await trial.decide({ perMinute: 5, perDay: 9 })).toMatchObject({
      remaining: 4,
      resetAt: second(trial.now() + MINUTE_MS),
    });
  });

  promise("subjects are counted apart, however alike their names", async (trial) => {
    const limits = { perMinute: 1, perDay: 9 };
    const odd = `address:${"x".repeat(300)}` as const;
    const subjects: Subject[] = [KEY, OTHER, ADDRESS, "address:1", "address:é", "address:ē", odd, `${odd}y`];
    for (const subject of subjects)
      expect(await trial.decide(limits, subject)).toMatchObject({ outcome: "allowed" });
    for (const subject of subjects)
      expect(await trial.decide(limits, subject)).toMatchObject({ outcome: "limited" });
  });
}
