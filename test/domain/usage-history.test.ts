import { describe, expect, test } from "bun:test";
import {
  compareByRequests,
  defaultSince,
  intervalStart,
  intervalStarts,
  requestsOf,
  retainedSince,
  sumOfRequests,
} from "../../src/domain/usage-history.ts";

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

  test("without a start, a period has 24 hours or 30 days", () => {
    expect(defaultSince("hour", NOON + 5)).toBe(NOON - 23 * HOUR_MS);
    expect(defaultSince("day", NOON)).toBe(Date.parse("2026-11-15T00:00:00Z") - 29 * DAY_MS);
  });
});

test("keys with the most requests, also rejected ones, come first, and then those with the lowest identifier", () => {
  const keys = [
    { keyId: 3, admitted: 5, limited: 0, banned: 0, errors: 5 },
    { keyId: 2, admitted: 0, limited: 5, banned: 0, errors: 0 },
    { keyId: 9, admitted: 1, limited: 2, banned: 3, errors: 1 },
    { keyId: 1, admitted: 0, limited: 0, banned: 4, errors: 0 },
  ];
  expect(keys.toSorted(compareByRequests).map(({ keyId }) => keyId)).toEqual([9, 2, 3, 1]);
  expect(keys.map(requestsOf)).toEqual([5, 5, 6, 4]);
  expect(sumOfRequests(keys)).toEqual({ admitted: 6, limited: 7, banned: 7, errors: 6 });
});
