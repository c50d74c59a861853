import { describe, expect, test } from "bun:test";
import {
  decide,
  DAY_MS,
  DEFAULT_BAN,
  isForgettable,
  MINUTE_MS,
  NEVER,
  newUsage,
  unban,
  settle,
} from "../../src/domain/rate-limit.ts";

const NOW = 1_800_000_000_000;
const ONE = { perMinute: 1, perDay: 9 };

describe("decide", () => {
  test("both windows open with the first request", () => {
    const usage = newUsage();
    decide(usage, ONE, NOW, DEFAULT_BAN);
    expect(usage).toEqual({
      minute: { openedAt: NOW, used: 1, refusedAt: NEVER, strikes: 0 },
      day: { openedAt: NOW, used: 1, refusedAt: NEVER, strikes: 0 },
      bannedAt: NEVER,
      bannedUntil: NEVER,
    });
  });

  test("a refusal is noted in the window that refused, and nothing else changes", () => {
    const usage = newUsage();
    decide(usage, ONE, NOW, DEFAULT_BAN);
    const { day } = structuredClone(usage);
    decide(usage, ONE, NOW + 5, DEFAULT_BAN);
    expect(usage.minute).toEqual({ openedAt: NOW, used: 1, refusedAt: NOW + 5, strikes: 0 });
    expect(usage.day).toEqual(day);
  });

  test("a refusal by both counts against the one that closes last", () => {
    const usage = newUsage();
    const limits = { perMinute: 1, perDay: 1 };
    decide(usage, limits, NOW, DEFAULT_BAN);
    decide(usage, limits, NOW, DEFAULT_BAN);
    expect([usage.minute.refusedAt, usage.day.refusedAt]).toEqual([NEVER, NOW]);
  });

  test("without rules nothing is counted towards a ban", () => {
    const usage = newUsage();
    for (let ms = 0; ms < 50_000; ms += 1_000) decide(usage, ONE, NOW + ms);
    expect(usage).toMatchObject({ minute: { refusedAt: NEVER, strikes: 0 }, bannedUntil: NEVER });
  });

  test("clocks that begin at nothing are clocks too", () => {
    const usage = newUsage();
    expect(decide(usage, ONE, 0, DEFAULT_BAN)).toMatchObject({ outcome: "allowed", resetAt: 60 });
    expect(decide(usage, ONE, 0, DEFAULT_BAN)).toMatchObject({ outcome: "limited", retryAfter: 60 });
  });
});

describe("settle", () => {
  test("a ban is no longer than the rules allow by now", () => {
    const usage = { ...newUsage(), bannedAt: NOW, bannedUntil: NOW + 300_000 };
    settle(usage, NOW + 1, { ...DEFAULT_BAN, lengthMs: 2_000 });
    expect(usage.bannedUntil).toBe(NOW + 2_000);
    settle(usage, NOW + 2_000, DEFAULT_BAN);
    expect([usage.bannedAt, usage.bannedUntil]).toEqual([NEVER, NEVER]);
  });

  test("a ban that seems to have begun in the future keeps its own length", () => {
    const usage = { ...newUsage(), bannedAt: NOW, bannedUntil: NOW + 2_000 };
    settle(usage, NOW - DAY_MS, DEFAULT_BAN);
    expect([usage.bannedAt, usage.bannedUntil]).toEqual([NOW - DAY_MS, NOW - DAY_MS + 2_000]);
  });

  test("what seems to have begun in the future begins now, with its counts", () => {
    const usage = newUsage();
    decide(usage, ONE, NOW, DEFAULT_BAN);
    decide(usage, ONE, NOW, DEFAULT_BAN);
    settle(usage, NOW - DAY_MS, DEFAULT_BAN);
    const openedAt = NOW - DAY_MS;
    expect(usage.minute).toEqual({ openedAt, used: 1, refusedAt: openedAt, strikes: 0 });
    expect(usage.day).toMatchObject({ openedAt, used: 1 });
  });
});

describe("unban", () => {
  test("strikes of a window that first refused after the unban stand", () => {
    const usage = newUsage();
    decide(usage, ONE, NOW, DEFAULT_BAN);
    decide(usage, ONE, NOW + 10, DEFAULT_BAN);
    decide(usage, ONE, NOW + 2_000, DEFAULT_BAN);
    unban(usage, NOW + 9);
    expect(usage.minute).toMatchObject({ refusedAt: NOW + 10, strikes: 1 });
    unban(usage, NOW + 10);
    expect(usage.minute).toMatchObject({ used: 1, refusedAt: NEVER, strikes: 0 });
  });
});

describe("isForgettable", () => {
  test("a usage is, once both windows and the ban have ended", () => {
    const usage = newUsage();
    expect(isForgettable(usage, NOW)).toBe(true);
    decide(usage, ONE, NOW);
    expect(isForgettable(usage, NOW + MINUTE_MS)).toBe(false);
    expect(isForgettable(usage, NOW + DAY_MS - 1)).toBe(false);
    expect(isForgettable(usage, NOW + DAY_MS)).toBe(true);
    usage.bannedUntil = NOW + DAY_MS + 1;
    expect(isForgettable(usage, NOW + DAY_MS)).toBe(false);
    expect(isForgettable(usage, NOW + DAY_MS + 1)).toBe(true);
  });

  test("one from the future is not", () => {
    const usage = newUsage();
    decide(usage, ONE, NOW + DAY_MS);
    expect(isForgettable(usage, NOW)).toBe(false);
  });
});
