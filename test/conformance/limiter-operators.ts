import { expect } from "bun:test";
import { DAY_MS, DEFAULT_BAN, MINUTE_MS, type Limits } from "../../src/domain/rate-limit.ts";
import { all, type Promises } from "./limiter-trial.ts";

export function operators(promise: Promises): void {
  const PRO: Limits = { perMinute: 300, perDay: 10_000 };

  promise("a larger plan keeps the counts", async (trial) => {
    await trial.times(61);
    expect(await trial.decide(PRO)).toMatchObject({ outcome: "allowed", limit: 300, remaining: 239 });
  });

  promise("a smaller plan keeps the counts, and what is left is never below nothing", async (trial) => {
    await trial.times(100, PRO);
    expect(await trial.decide()).toMatchObject({
      outcome: "limited",
      limit: 60,
      remaining: 0,
      retryAfter: 60,
    });
  });

  promise("a larger plan does not lift a ban", async (trial) => {
    await trial.earnBan();
    expect(await trial.decide(PRO)).toMatchObject({ outcome: "banned", limit: 300, remaining: 0 });
  });

  promise("a unban lifts the ban and its strikes, and gives no quota back", async (trial) => {
    await trial.earnBan();
    trial.advance(5);
    await trial.unban(trial.now());
    expect(await trial.decide()).toMatchObject({ outcome: "limited" });
    trial.advance(DEFAULT_BAN.graceMs + 1);
    expect(await trial.times(10)).toEqual([...all(9, "limited"), "banned"]);
  });

  promise("a unban forgives strikes before they become a ban", async (trial) => {
    await trial.provoke();
    await trial.times(9);
    await trial.unban(trial.now());
    expect(await trial.times(30)).toEqual(all(30, "limited"));
  });

  promise("a ban that began after the unban stands", async (trial) => {
    await trial.earnBan();
    await trial.unban(trial.now() - 1);
    expect(await trial.decide()).toMatchObject({ outcome: "banned" });
  });

  promise("a unban of somebody unknown is nothing", async (trial) => {
    await trial.unban(trial.now());
    expect(await trial.usage()).toBeUndefined();
  });

  promise("a usage tells both windows, strikes and ban, and charges nothing", async (trial) => {
    expect(await trial.usage()).toBeUndefined();
    const openedAt = trial.now();
    await trial.provoke();
    const refusedAt = openedAt;
    await trial.times(3);
    const minute = { openedAt, used: 60, refusedAt, strikes: 3 };
    for (let i = 0; i < 20; i++)
      expect(await trial.usage()).toMatchObject({ minute, day: { openedAt, used: 60 } });
    await trial.times(7);
    expect(await trial.usage()).toMatchObject({
      minute: { used: 60, strikes: 0 },
      bannedAt: trial.now(),
      bannedUntil: trial.now() + DEFAULT_BAN.lengthMs,
    });
  });

  promise("a usage shows what is open now, and nothing once all has ended", async (trial) => {
    await trial.decide();
    trial.advance(MINUTE_MS);
    expect(await trial.usage()).toMatchObject({ minute: { used: 0 }, day: { used: 1 } });
    trial.advance(DAY_MS - MINUTE_MS);
    expect(await trial.usage()).toBeUndefined();
  });
}
