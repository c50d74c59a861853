import { expect } from "bun:test";
import { DAY_MS, DEFAULT_BAN, MINUTE_MS } from "../../src/domain/rate-limit.ts";
import { ADDRESS, all, FREE, KEY, OTHER, second, type Promises } from "./limiter-trial.ts";

export function clockAndRestart(promise: Promises): void {
  for (const back of [1, MINUTE_MS, DAY_MS, 400 * DAY_MS]) {
    promise(`a clock set back by ${back} ms gives no quota twice and stretches no window`, async (trial) => {
      await trial.times(60);
      trial.advance(-back);
      const resetAt = second(trial.now() + MINUTE_MS);
      expect(await trial.decide()).toMatchObject({
        outcome: "limited",
        remaining: 0,
        resetAt,
        retryAfter: 60,
      });
      trial.advance(MINUTE_MS);
      expect(await trial.decide()).toMatchObject({ outcome: "allowed", remaining: 59 });
      expect(await trial.usage()).toMatchObject({ day: { used: 61 } });
    });
  }

  promise(
    "a clock that jumps a day closes both windows; set right again it gives nothing back",
    async (trial) => {
      await trial.times(60);
      trial.advance(DAY_MS);
      expect(await trial.times(61)).toEqual([...all(60, "allowed"), "limited"]);
      trial.advance(-DAY_MS);
      expect(await trial.decide()).toMatchObject({ outcome: "limited", retryAfter: 60 });
    },
  );

  promise("a clock set back stretches no ban", async (trial) => {
    await trial.earnBan();
    trial.advance(-DAY_MS);
    expect(await trial.decide()).toMatchObject({ outcome: "banned", retryAfter: 300 });
    trial.advance(DEFAULT_BAN.lengthMs);
    expect(await trial.decide()).toMatchObject({ outcome: "allowed" });
  });

  promise("a ban that was served does not return with the clock", async (trial) => {
    await trial.earnBan();
    trial.advance(DEFAULT_BAN.lengthMs);
    expect(await trial.decide()).toMatchObject({ outcome: "allowed" });
    trial.advance(-1_000);
    expect(await trial.decide()).toMatchObject({ outcome: "allowed" });
  });

  promise("counts, strikes and bans survive a restart exactly", async (trial) => {
    await trial.times(42);
    await trial.provoke(FREE, OTHER);
    await trial.times(9, FREE, OTHER);
    await trial.earnBan(FREE, "key:3");
    await trial.times(7, FREE, ADDRESS);
    const before = await Promise.all(([KEY, OTHER, "key:3", ADDRESS] as const).map(trial.usage));
    await trial.restart();
    expect(await Promise.all(([KEY, OTHER, "key:3", ADDRESS] as const).map(trial.usage))).toEqual(before);
    expect(await trial.decide()).toMatchObject({ outcome: "allowed", remaining: 17 });
    expect(await trial.decide(FREE, OTHER)).toMatchObject({ outcome: "banned" });
    expect(await trial.decide(FREE, "key:3")).toMatchObject({ outcome: "banned", retryAfter: 300 });
    expect(await trial.decide(FREE, ADDRESS)).toMatchObject({ outcome: "allowed", remaining: 52 });
  });

  promise("a restart under a clock that was set back gives no quota twice", async (trial) => {
    await trial.times(60);
    trial.advance(-DAY_MS);
    await trial.restart();
    expect(await trial.decide()).toMatchObject({ outcome: "limited", retryAfter: 60 });
  });

  promise("what ended while nobody ran does not come back", async (trial) => {
    await trial.earnBan();
    trial.advance(DAY_MS);
    await trial.restart();
    expect(await trial.usage()).toBeUndefined();
    expect(await trial.times(60)).toEqual(all(60, "allowed"));
  });
}
