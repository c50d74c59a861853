import { describe, expect, test } from "bun:test";
import { retainedSince, intervalStart, intervalStarts } from "../../src/domain/usage-history.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const NOON = Date.parse("2026-11-15T12:00:00Z");
const ALL = { first: 0, last: Infinity };

describe("intervals", () => {
  test("hours and days start in UTC, also before 1970", () => {
    expect(intervalStart("hour", NOON + HOUR_MS - 1)).toBe(NOON);
    expect(intervalStart("day", NOON)).toBe(Date.parse("2026-11-15T00:00:00Z"));
    expect(intervalStart("day", -1)).toBe(-DAY_MS);
  });

  test("a period has the intervals that contain its ends, as far as they are stored", () => {
    const period = { by: "hour", since: NOON + 1, until: NOON + 2 * HOUR_MS } as const;
    expect([...intervalStarts(period, ALL)]).toEqual([NOON, NOON + HOUR_MS, NOON + 2 * HOUR_MS]);
    expect([...intervalStarts(period, { first: NOON + HOUR_MS, last: NOON + HOUR_MS })]).toEqual([
      NOON + HOUR_MS,
    ]);
    expect([...intervalStarts(period, { first: Infinity, last: -Infinity })]).toEqual([]);
  });

  test("hours are kept for 35 days and days for 400", () => {
    expect(retainedSince("hour", NOON + 5)).toBe(NOON - 35 * DAY_MS);
    expect(retainedSince("day", NOON)).toBe(Date.parse("2026-11-15T00:00:00Z") - 400 * DAY_MS);
  });
});
