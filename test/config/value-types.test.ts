import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { duration, formatValue, limitPair, pointInTime, timeOf } from "../../src/config/value-types.ts";
import { parseValues, usageError } from "./parsing.ts";

const DAY = 86_400_000;
const NOW = Date.parse("2026-11-15T12:00:00Z");

test("limits: parse is the inverse of format", () => {
  const count = fc.integer({ min: 1, max: 1_000_000_000 });
  fc.assert(
    fc.property(count, count, (perMinute, perDay) => {
      expect(limitPair.parse(formatValue(limitPair, { perMinute, perDay }))).toEqual({ perMinute, perDay });
    }),
  );
});

describe("durations", () => {
  test.each([
    ["500ms", 500],
    ["90s", 90_000],
    ["15m", 900_000],
    ["24h", 86_400_000],
    ["30d", 2_592_000_000],
    ["0", 0],
    ["0s", 0],
  ])("%s is %d milliseconds", (text, ms) => {
    expect(duration({ min: 0, max: 30 * DAY }).parse(text)).toBe(ms);
  });

  test("parse is the inverse of format", () => {
    const type = duration({ min: 0, max: 3_650 * DAY });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3_650 * DAY }), (ms) => {
        expect(type.parse(formatValue(type, ms))).toBe(ms);
      }),
    );
    expect([DAY, 90_000, 1_500].map((ms) => formatValue(type, ms))).toEqual(["1d", "90s", "1500ms"]);
  });

  test("no unit is suggested that leads beyond the bounds", () => {
    expect(usageError({ "limits-timeout": ["2000"] })).not.toContain("did you mean");
  });

  test("a suggestion is always valid", () => {
    const bounds = fc.integer({ min: 0, max: 100_000_000 });
    fc.assert(
      fc.property(bounds, bounds, fc.nat({ max: 100_000 }), (a, b, count) => {
        const type = duration({ min: Math.min(a, b), max: Math.max(a, b) });
        const suggestion = type.hint?.(`${count}`);
        if (suggestion !== undefined) expect(type.parse(suggestion)).toBeNumber();
      }),
    );
  });
});

test("the variable of a switch is true or false", () => {
  const metricsPublic = (text: string) =>
    parseValues({}, { PETSTORE_METRICS_PUBLIC: text })["metrics-public"];
  expect(["true", "1", "false", "0"].map(metricsPublic)).toEqual([true, true, false, false]);
  expect(usageError({}, { PETSTORE_METRICS_PUBLIC: "yes" })).toContain("PETSTORE_METRICS_PUBLIC");
});

describe("points in time", () => {
  test.each([
    ["2026-11-01", "2026-11-01T00:00:00.000Z"],
    ["2028-02-29", "2028-02-29T00:00:00.000Z"],
    ["2026-11-01T12:30Z", "2026-11-01T12:30:00.000Z"],
    ["2026-11-01T12:30:15Z", "2026-11-01T12:30:15.000Z"],
    ["2026-11-01T12:30:15.250+02:00", "2026-11-01T10:30:15.250Z"],
    ["30d", "2026-10-16T12:00:00.000Z"],
    ["24h", "2026-11-14T12:00:00.000Z"],
    ["0", "2026-11-15T12:00:00.000Z"],
  ])("%s", (text, time) => {
    const value = pointInTime.parse(text);
    expect(value && new Date(timeOf(value, NOW)).toISOString()).toBe(time);
    expect(value && pointInTime.parse(formatValue(pointInTime, value))).toEqual(value);
  });

  test.each([
    ..."yesterday 2026-02-29 2026-13-01 2026-11-1 2026-11-01T25:00Z 2026-11-01T12:00".split(" "),
    ..."2026-02-30T12:00:00Z 5000d -1d 2026".split(" "),
    "",
  ])("%p is none", (text) => {
    expect(pointInTime.parse(text)).toBeUndefined();
  });
});
