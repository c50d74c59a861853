import { describe, expect, test } from "bun:test";
import {
  decide,
  DEFAULT_BAN,
  expire,
  isExpired,
  NEVER,
  newQuota,
  unban,
  toStored,
  fromStored,
} from "../../src/domain/rate-limit.ts";

const NOW = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const ONE = { perMinute: 1, perDay: 9 };

test("a clock may start at 0", () => {
  const quota = newQuota();
  expect(decide(quota, ONE, 0, DEFAULT_BAN)).toMatchObject({ outcome: "allowed", resetAt: 60 });
  expect(decide(quota, ONE, 0, DEFAULT_BAN)).toMatchObject({ outcome: "limited", retryAfter: 60 });
});

test("a rejection counts in the window that rejected, and in the one that closes last if both did", () => {
  const quota = newQuota();
  decide(quota, ONE, NOW, DEFAULT_BAN);
  const { day } = structuredClone(quota);
  decide(quota, ONE, NOW + 5, DEFAULT_BAN);
  expect(quota.minute).toEqual({ openedAt: NOW, used: 1, firstRejectedAt: NOW + 5, strikes: 0 });
  expect(quota.day).toEqual(day);
  decide(quota, { perMinute: 1, perDay: 1 }, NOW + 5, DEFAULT_BAN);
  expect(quota.day.firstRejectedAt).toBe(NOW + 5);
});

test("what is in the future begins now and keeps its counts and its length", () => {
  const quota = { ...newQuota(), bannedAt: NOW, bannedUntil: NOW + 2_000 };
  decide(quota, ONE, NOW + 2_000, DEFAULT_BAN);
  decide(quota, ONE, NOW + 2_000, DEFAULT_BAN);
  const now = NOW - DAY_MS;
  expire(quota, now, DEFAULT_BAN);
  expect(quota.minute).toEqual({ openedAt: now, used: 1, firstRejectedAt: now, strikes: 0 });
  expect(quota.day).toMatchObject({ openedAt: now, used: 1 });
  expect(quota).toMatchObject({ bannedAt: NEVER, bannedUntil: now, lastBanMs: 2_000 });
  const banned = { ...newQuota(), bannedAt: NOW, bannedUntil: NOW + 2_000 };
  expire(banned, now, DEFAULT_BAN);
  expect([banned.bannedAt, banned.bannedUntil]).toEqual([now, now + 2_000]);
});

test("a ban is no longer than the current rules allow", () => {
  const quota = { ...newQuota(), bannedAt: NOW, bannedUntil: NOW + 300_000 };
  expire(quota, NOW + 1, { ...DEFAULT_BAN, lengthMs: 1_000, maxLengthMs: 2_000 });
  expect(quota.bannedUntil).toBe(NOW + 2_000);
  expire(quota, NOW + 2_000, DEFAULT_BAN);
  expect(quota).toMatchObject({ bannedAt: NEVER, bannedUntil: NOW + 2_000, lastBanMs: 2_000 });
});

test.each([
  ["minute", ONE],
  ["day", { perMinute: 9, perDay: 1 }],
] as const)("an unban leaves the strikes of a %s that first rejected after it", (window, limits) => {
  const quota = newQuota();
  decide(quota, limits, NOW, DEFAULT_BAN);
  decide(quota, limits, NOW + 10, DEFAULT_BAN);
  decide(quota, limits, NOW + 2_000, DEFAULT_BAN);
  unban(quota, NOW + 9);
  expect(quota[window]).toMatchObject({ firstRejectedAt: NOW + 10, strikes: 1 });
  unban(quota, NOW + 10);
  expect(quota[window]).toMatchObject({ used: 1, firstRejectedAt: NEVER, strikes: 0 });
});

test("a banned key with nothing remaining in both windows is shown the longer one", () => {
  const quota = { ...newQuota(), bannedAt: NOW + 2, bannedUntil: NOW + 9_000 };
  quota.minute = { ...quota.minute, openedAt: NOW, used: 1 };
  quota.day = { ...quota.day, openedAt: NOW, used: 2 };
  expect(decide(quota, { perMinute: 1, perDay: 2 }, NOW + 3, DEFAULT_BAN)).toMatchObject({ limit: 2 });
});

describe("the length of the next ban", () => {
  const lengthAfter = (lastBanMs: number, lengthMs: number, maxLengthMs: number) => {
    const quota = { ...newQuota(), bannedUntil: NOW, lastBanMs };
    const rules = { strikes: 1, graceMs: 0, lengthMs, maxLengthMs };
    for (let ms = 1; ms <= 3; ms++) decide(quota, ONE, NOW + ms, rules);
    expect(quota.bannedAt).toBe(NOW + 3);
    return quota.bannedUntil - quota.bannedAt;
  };

  test.each([
    [5_000, 5_000, 20_000, 10_000],
    [9_000, 5_000, 20_000, 18_000],
    [15_000, 5_000, 20_000, 20_000],
    [20_000, 5_000, 20_000, 20_000],
    [5_000, 60_000, 90_000, 60_000],
    [5_000, 5_000, 5_000, 5_000],
  ])("after %d ms, with bans of %d to %d ms: %d ms", (lastBanMs, lengthMs, maxLengthMs, expected) => {
    expect(lengthAfter(lastBanMs, lengthMs, maxLengthMs)).toBe(expected);
  });
});

describe("isExpired", () => {
  test("quota is expired once both windows are closed and a ban has been over for 24 hours", () => {
    const quota = newQuota();
    expect(isExpired(quota, NOW)).toBe(true);
    decide(quota, ONE, NOW);
    expect(isExpired(quota, NOW + MINUTE_MS)).toBe(false);
    expect(isExpired(quota, NOW + DAY_MS - 1)).toBe(false);
    expect(isExpired(quota, NOW + DAY_MS)).toBe(true);
    Object.assign(quota, { bannedAt: NOW, bannedUntil: NOW + 1 });
    expect(isExpired(quota, NOW + DAY_MS)).toBe(false);
    expect(isExpired(quota, NOW + DAY_MS + 1)).toBe(true);
    expect(isExpired({ ...newQuota(), bannedUntil: NOW, lastBanMs: 1 }, NOW + DAY_MS - 1)).toBe(false);
    expect(isExpired({ ...newQuota(), bannedUntil: NOW, lastBanMs: 1 }, NOW + DAY_MS)).toBe(true);
    expect(isExpired(newQuota(), 0)).toBe(true);
  });

  test("quota from the future is not expired", () => {
    const quota = newQuota();
    decide(quota, ONE, NOW + DAY_MS);
    expect(isExpired(quota, NOW)).toBe(false);
  });
});

test("stored data has the ten numbers of a quota in this order, in later releases too", () => {
  const quota = { ...newQuota(), bannedUntil: NOW, lastBanMs: 1 };
  decide(quota, ONE, NOW, DEFAULT_BAN);
  decide(quota, ONE, NOW + 1, DEFAULT_BAN);
  decide(quota, ONE, NOW + 1_002, DEFAULT_BAN);
  expect(toStored(quota)).toEqual([NOW, 1, NOW + 1, 1, NOW, 1, -1, 0, NOW, -2]);
  expect(fromStored(toStored(quota))).toEqual(quota);
  const banned = { ...newQuota(), bannedAt: NOW, bannedUntil: NOW + 5 };
  expect(toStored(banned).slice(-2)).toEqual([NOW, NOW + 5]);
  expect(fromStored(toStored(banned))).toEqual(banned);
  expect(toStored(newQuota()).slice(-2)).toEqual([-1, -1]);
  expect(fromStored([])).toEqual(newQuota());
});
