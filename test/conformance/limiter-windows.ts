import { expect } from "bun:test";
import { DAY_MS, MINUTE_MS, type Subject } from "../../src/domain/rate-limit.ts";
import { ADDRESS, all, KEY, OTHER, second, type Promises } from "./limiter-trial.ts";

export function windows(promise: Promises): void {
  promise("of 61 requests within a minute of the first exactly 60 are admitted", async (trial) => {
    const first = await trial.times(30);
    trial.advance(MINUTE_MS - 1);
    expect([...first, ...(await trial.times(31))]).toEqual([...all(60, "admitted"), "limited"]);
  });

  promise("requests that come at the same time are counted one by one", async (trial) => {
    const verdicts = await Promise.all(Array.from({ length: 200 }, () => trial.admit()));
    const admitted = verdicts.filter(({ outcome }) => outcome === "admitted");
    expect(new Set(admitted.map(({ remaining }) => remaining)).size).toBe(60);
    expect(admitted).toHaveLength(60);
  });

  promise(
    "a window closes its length after the request that opened it, to the millisecond",
    async (trial) => {
      await trial.times(60);
      trial.advance(MINUTE_MS - 1);
      expect(await trial.admit()).toMatchObject({ outcome: "limited" });
      trial.advance(1);
      expect(await trial.admit()).toMatchObject({ outcome: "admitted", remaining: 59 });
    },
  );

  promise("the next window opens with the first request that finds none open", async (trial) => {
    await trial.admit();
    trial.advance(3 * MINUTE_MS + 7);
    expect(await trial.admit()).toMatchObject({ remaining: 59, resetAt: second(trial.now() + MINUTE_MS) });
  });

  promise("the day refuses although the minute has room, until the day closes", async (trial) => {
    const limits = { perMinute: 2, perDay: 3 };
    await trial.times(2, limits);
    trial.advance(MINUTE_MS);
    expect(await trial.times(2, limits)).toEqual(["admitted", "limited"]);
    trial.advance(DAY_MS - MINUTE_MS - 1);
    expect(await trial.admit(limits)).toMatchObject({ outcome: "limited", limit: 3, retryAfter: 1 });
    trial.advance(1);
    expect(await trial.admit(limits)).toMatchObject({ outcome: "admitted" });
  });

  promise("a request refused by the minute costs nothing of the day", async (trial) => {
    const limits = { perMinute: 2, perDay: 4 };
    expect(await trial.times(5, limits)).toEqual([...all(2, "admitted"), ...all(3, "limited")]);
    trial.advance(MINUTE_MS);
    expect(await trial.times(2, limits)).toEqual(all(2, "admitted"));
  });

  promise("a request refused by the day costs nothing of the minute, and opens none", async (trial) => {
    const limits = { perMinute: 5, perDay: 1 };
    await trial.admit(limits);
    trial.advance(MINUTE_MS);
    await trial.admit(limits);
    expect(await trial.standing()).toMatchObject({ minute: { used: 0 }, day: { used: 1 } });
    trial.advance(DAY_MS - MINUTE_MS);
    expect(await trial.admit({ perMinute: 5, perDay: 9 })).toMatchObject({
      remaining: 4,
      resetAt: second(trial.now() + MINUTE_MS),
    });
  });

  promise("subjects are counted apart, however alike their names", async (trial) => {
    const limits = { perMinute: 1, perDay: 9 };
    const odd = `address:${"x".repeat(300)}` as const;
    const subjects: Subject[] = [KEY, OTHER, ADDRESS, "address:1", "address:é", "address:ē", odd, `${odd}y`];
    for (const subject of subjects)
      expect(await trial.admit(limits, subject)).toMatchObject({ outcome: "admitted" });
    for (const subject of subjects)
      expect(await trial.admit(limits, subject)).toMatchObject({ outcome: "limited" });
  });
}
