import { describe, expect, test } from "bun:test";
import { pointInTime, timeOf } from "../../src/config/time-types.ts";

const NOW = Date.parse("2026-11-15T12:00:00Z");

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
    expect(value && pointInTime.parse(pointInTime.format(value))).toEqual(value);
  });

  test.each([
    "",
    "yesterday",
    "2026-02-29",
    "2026-13-01",
    "2026-11-1",
    "2026-11-01T25:00Z",
    "2026-11-01T12:00",
    "2026-02-30T12:00:00Z",
    "5000d",
    "-1d",
    "2026",
  ])("%p is none", (text) => {
    expect(pointInTime.parse(text)).toBeUndefined();
  });

  test("a number without a unit gets a hint", () => {
    expect(pointInTime.hint?.("30")).toBe("30s");
  });
});
