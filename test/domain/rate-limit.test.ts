import { describe, expect, test } from "bun:test";
import {
  admit,
  DAY_MS,
  DEFAULT_BAN,
  isForgettable,
  MINUTE_MS,
  NEVER,
  newStanding,
  pardon,
  settle,
} from "../../src/domain/rate-limit.ts";

const NOW = 1_800_000_000_000;
const ONE = { perMinute: 1, perDay: 9 };

describe("admit", () => {
  test("both windows open with the first request", () => {
    const standing = newStanding();
    admit(standing, ONE, NOW, DEFAULT_BAN);
    expect(standing).toEqual({
      minute: { openedAt: NOW, used: 1, refusedAt: NEVER, strikes: 0 },
      day: { openedAt: NOW, used: 1, refusedAt: NEVER, strikes: 0 },
      bannedAt: NEVER,
      bannedUntil: NEVER,
    });
  });

  test("a refusal is noted in the window that refused, and nothing else changes", () => {
    const standing = newStanding();
    admit(standing, ONE, NOW, DEFAULT_BAN);
    const { day } = structuredClone(standing);
    admit(standing, ONE, NOW + 5, DEFAULT_BAN);
    expect(standing.minute).toEqual({ openedAt: NOW, used: 1, refusedAt: NOW + 5, strikes: 0 });
    expect(standing.day).toEqual(day);
  });

  test("a refusal by both counts against the one that closes last", () => {
    const standing = newStanding();
    const limits = { perMinute: 1, perDay: 1 };
    admit(standing, limits, NOW, DEFAULT_BAN);
    admit(standing, limits, NOW, DEFAULT_BAN);
    expect([standing.minute.refusedAt, standing.day.refusedAt]).toEqual([NEVER, NOW]);
  });

  test("without rules nothing is counted towards a ban", () => {
    const standing = newStanding();
    for (let ms = 0; ms < 50_000; ms += 1_000) admit(standing, ONE, NOW + ms);
    expect(standing).toMatchObject({ minute: { refusedAt: NEVER, strikes: 0 }, bannedUntil: NEVER });
  });

  test("clocks that begin at nothing are clocks too", () => {
    const standing = newStanding();
    expect(admit(standing, ONE, 0, DEFAULT_BAN)).toMatchObject({ outcome: "admitted", resetAt: 60 });
    expect(admit(standing, ONE, 0, DEFAULT_BAN)).toMatchObject({ outcome: "limited", retryAfter: 60 });
  });
});

describe("settle", () => {
  test("a ban is no longer than the rules allow by now", () => {
    const standing = { ...newStanding(), bannedAt: NOW, bannedUntil: NOW + 300_000 };
    settle(standing, NOW + 1, { ...DEFAULT_BAN, lengthMs: 2_000 });
    expect(standing.bannedUntil).toBe(NOW + 2_000);
    settle(standing, NOW + 2_000, DEFAULT_BAN);
    expect([standing.bannedAt, standing.bannedUntil]).toEqual([NEVER, NEVER]);
  });

  test("a ban that seems to have begun in the future keeps its own length", () => {
    const standing = { ...newStanding(), bannedAt: NOW, bannedUntil: NOW + 2_000 };
    settle(standing, NOW - DAY_MS, DEFAULT_BAN);
    expect([standing.bannedAt, standing.bannedUntil]).toEqual([NOW - DAY_MS, NOW - DAY_MS + 2_000]);
  });

  test("what seems to have begun in the future begins now, with its counts", () => {
    const standing = newStanding();
    admit(standing, ONE, NOW, DEFAULT_BAN);
    admit(standing, ONE, NOW, DEFAULT_BAN);
    settle(standing, NOW - DAY_MS, DEFAULT_BAN);
    const openedAt = NOW - DAY_MS;
    expect(standing.minute).toEqual({ openedAt, used: 1, refusedAt: openedAt, strikes: 0 });
    expect(standing.day).toMatchObject({ openedAt, used: 1 });
  });
});

describe("pardon", () => {
  test("strikes of a window that first refused after the pardon stand", () => {
    const standing = newStanding();
    admit(standing, ONE, NOW, DEFAULT_BAN);
    admit(standing, ONE, NOW + 10, DEFAULT_BAN);
    admit(standing, ONE, NOW + 2_000, DEFAULT_BAN);
    pardon(standing, NOW + 9);
    expect(standing.minute).toMatchObject({ refusedAt: NOW + 10, strikes: 1 });
    pardon(standing, NOW + 10);
    expect(standing.minute).toMatchObject({ used: 1, refusedAt: NEVER, strikes: 0 });
  });
});

describe("isForgettable", () => {
  test("a standing is, once both windows and the ban have ended", () => {
    const standing = newStanding();
    expect(isForgettable(standing, NOW)).toBe(true);
    admit(standing, ONE, NOW);
    expect(isForgettable(standing, NOW + MINUTE_MS)).toBe(false);
    expect(isForgettable(standing, NOW + DAY_MS - 1)).toBe(false);
    expect(isForgettable(standing, NOW + DAY_MS)).toBe(true);
    standing.bannedUntil = NOW + DAY_MS + 1;
    expect(isForgettable(standing, NOW + DAY_MS)).toBe(false);
    expect(isForgettable(standing, NOW + DAY_MS + 1)).toBe(true);
  });

  test("one from the future is not", () => {
    const standing = newStanding();
    admit(standing, ONE, NOW + DAY_MS);
    expect(isForgettable(standing, NOW)).toBe(false);
  });
});
