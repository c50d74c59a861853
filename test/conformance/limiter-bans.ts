import { expect } from "bun:test";
import { DEFAULT_BAN, MINUTE_MS } from "../../src/domain/rate-limit.ts";
import { ADDRESS, all, FREE, OTHER, second, type Promises } from "./limiter-trial.ts";

export function bans(promise: Promises): void {
  const banned = { outcome: "banned", remaining: 0 };

  promise("refusals within the grace are forgiven, however many", async (trial) => {
    await trial.times(60);
    expect(await trial.times(100)).toEqual(all(100, "limited"));
    trial.advance(DEFAULT_BAN.graceMs);
    expect(await trial.times(100)).toEqual(all(100, "limited"));
    expect(await trial.usage()).toMatchObject({ minute: { strikes: 0 } });
  });

  promise("the grace begins with the first refusal, not with the last admission", async (trial) => {
    await trial.times(60);
    trial.advance(30_000);
    expect(await trial.times(100)).toEqual(all(100, "limited"));
  });

  promise("nine strikes are limited, the tenth is itself answered as banned", async (trial) => {
    await trial.provoke();
    expect(await trial.times(9)).toEqual(all(9, "limited"));
    expect(await trial.decide()).toEqual({
      outcome: "banned",
      limit: 60,
      remaining: 0,
      resetAt: second(trial.now() + 300_000),
      retryAfter: 300,
    });
  });

  promise("requests during a ban neither extend it nor count", async (trial) => {
    await trial.earnBan();
    const resetAt = second(trial.now() + DEFAULT_BAN.lengthMs);
    for (let i = 0; i < 29; i++) {
      trial.advance(10_000);
      expect(await trial.decide()).toMatchObject({ ...banned, resetAt, retryAfter: 300 - (i + 1) * 10 });
    }
    trial.advance(9_999);
    expect(await trial.decide()).toMatchObject({ ...banned, resetAt, retryAfter: 1 });
    trial.advance(1);
    expect(await trial.decide()).toMatchObject({ outcome: "allowed", remaining: 59 });
    expect(await trial.usage()).toMatchObject({ day: { used: 61 }, minute: { strikes: 0 } });
  });

  promise("strikes vanish when their window closes, and the grace begins anew", async (trial) => {
    await trial.provoke();
    await trial.times(9);
    trial.advance(MINUTE_MS);
    expect(await trial.times(60)).toEqual(all(60, "allowed"));
    expect(await trial.times(20)).toEqual(all(20, "limited"));
    trial.advance(DEFAULT_BAN.graceMs + 1);
    expect(await trial.times(10)).toEqual([...all(9, "limited"), "banned"]);
  });

  promise("strikes of the day outlast the minute", async (trial) => {
    const limits = { perMinute: 5, perDay: 2 };
    await trial.provoke(limits);
    await trial.times(5, limits);
    trial.advance(10 * MINUTE_MS);
    expect(await trial.times(5, limits)).toEqual([...all(4, "limited"), "banned"]);
  });

  promise("after a ban it takes as many strikes again, if the day is still spent", async (trial) => {
    const limits = { perMinute: 5, perDay: 2 };
    await trial.earnBan(limits);
    trial.advance(DEFAULT_BAN.lengthMs);
    expect(await trial.times(10, limits)).toEqual([...all(9, "limited"), "banned"]);
  });

  promise("an address is never banned", async (trial) => {
    await trial.provoke(FREE, ADDRESS);
    expect(await trial.times(200, FREE, ADDRESS)).toEqual(all(200, "limited"));
  });

  promise("a ban is nobody else's business", async (trial) => {
    await trial.earnBan();
    expect(await trial.decide(FREE, OTHER)).toMatchObject({ outcome: "allowed", remaining: 59 });
    expect(await trial.decide(FREE, "address:1")).toMatchObject({ outcome: "allowed", remaining: 59 });
  });

  promise(
    "threshold, grace and length are settings; the wait is rounded up",
    async (trial) => {
      await trial.times(61);
      trial.advance(1);
      expect(await trial.decide()).toMatchObject({ outcome: "limited" });
      expect(await trial.decide()).toMatchObject({
        ...banned,
        retryAfter: 2,
        resetAt: second(trial.now() + 1_500),
      });
      trial.advance(1_500);
      expect(await trial.decide()).toMatchObject({ outcome: "limited" });
    },
    { strikes: 2, graceMs: 0, lengthMs: 1_500 },
  );
}
