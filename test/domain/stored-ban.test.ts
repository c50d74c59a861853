import { expect, test } from "bun:test";
import { newUsage } from "../../src/domain/rate-limit.ts";
import { setBan, storedBanTime, storedBanUntilOrLength } from "../../src/domain/stored-ban.ts";

const AT = 1_800_000_000_000;

/** Stored data has these numbers, so they stay the same in later releases. */
test.each([
  ["no ban", {}, [-1, -1]],
  ["a current ban, as in earlier releases", { bannedAt: AT, bannedUntil: AT + 300_000 }, [AT, AT + 300_000]],
  ["a last ban", { lastBanEndedAt: AT, lastBanMs: 300_000 }, [AT, -300_001]],
  ["a last ban of one millisecond", { lastBanEndedAt: AT, lastBanMs: 1 }, [AT, -2]],
] as const)("%s is two numbers, and the numbers are that ban again", (_, ban, [time, untilOrLength]) => {
  const usage = { ...newUsage(), ...ban };
  expect([storedBanTime(usage), storedBanUntilOrLength(usage)]).toEqual([time, untilOrLength]);
  const read = { ...newUsage(), bannedAt: 1, bannedUntil: 2, lastBanEndedAt: 3, lastBanMs: 4 };
  setBan(read, time, untilOrLength);
  expect(read).toEqual(usage);
});
