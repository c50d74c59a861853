import { latency } from "../../src/text/durations.ts";
import { figure } from "../../src/text/formatting.ts";
import { expect, test } from "bun:test";
import {
  axisTimes,
  capitalized,
  change,
  clock,
  clockTime,
  compact,
  localInput,
  localInputOf,
  localTime,
  ordinal,
  percent,
  relative,
  timeOfInput,
  utcDay,
  utcTime,
} from "../../src/pages/format.ts";

test("a value is compared with the one before", () => {
  expect([
    change(112, 100),
    change(97, 100),
    change(5, 5),
    change(1_001, 1_000),
    change(7, 0),
    change(0, 7),
    change(250, 10),
    change(100, 10),
    change(99, 10),
    change(995, 1_000),
    change(0, 0),
  ]).toEqual([
    "+12 %",
    "−3 %",
    "as before",
    "± 0 %",
    "none before",
    "−100 %",
    "× 25",
    "× 10",
    "+890 %",
    "−1 %",
    "as before",
  ]);
});

test("figures have two or three digits that matter", () => {
  expect([0, 0.0416, 2.149, 61.25, 612.4, 12_345.6].map(figure)).toEqual([
    "0",
    "0.042",
    "2.1",
    "61.3",
    "612",
    "12,346",
  ]);
});

test("a part that is not nothing is never 0 %", () => {
  expect(percent(0, 1_000)).toBe("0 %");
  expect(percent(0, 0)).toBe("0 %");
  expect(percent(4, 1_000)).toBe("0.4 %");
  expect(percent(1, 1_000_000)).toBe("< 0.1 %");
  expect(percent(1, 1_000)).toBe("0.1 %");
  expect(percent(1_000, 1_000)).toBe("100 %");
});

test("response times are in the unit that fits", () => {
  expect([0, 0.34, 2.1, 999, 1_240].map(latency)).toEqual(["0 ms", "340 µs", "2.1 ms", "999 ms", "1.2 s"]);
});

test("times are relative to now, on either side", () => {
  expect(relative(1_000_000, 1_002_000)).toBe("2 s ago");
  expect(relative(1_300_000, 1_000_000)).toBe("in 5 min");
  expect(relative(1_000_000, 1_000_400)).toBe("now");
  expect([999, 1_000, -999, -1_000].map((age) => relative(1_000_000, 1_000_000 + age))).toEqual([
    "now",
    "1 s ago",
    "now",
    "in 1 s",
  ]);
});

test("ordinal numbers", () => {
  expect([1, 2, 3, 4, 11, 12, 22, 103].map(ordinal).join()).toBe("1st,2nd,3rd,4th,11th,12th,22nd,103rd");
});

test("the instant in UTC has its zone", () => {
  expect(utcTime(Date.UTC(2026, 10, 15, 16, 41, 52, 829))).toBe("2026-11-15 16:41:52 UTC");
});

test("an axis has times of day, the date at midnight alone, and days in UTC", () => {
  const at = (hour: number, second = 0) => new Date(2026, 10, 18, hour, 0, second).getTime() / 1_000;
  expect(axisTimes([at(12)], false)).toEqual(["12:00"]);
  expect(axisTimes([at(18), at(24), at(30)], false)).toEqual(["18:00", "19 Nov", "06:00"]);
  expect(axisTimes([at(5, 10), at(5, 40)], false)).toEqual(["05:00:10", "05:00:40"]);
  expect(axisTimes([Date.UTC(2026, 10, 18) / 1_000], true)).toEqual(["18 Nov"]);
  expect(axisTimes([at(5), at(5, 60)], false)).toEqual(["05:00", "05:01"]);
  expect(axisTimes([], false)).toEqual([]);
  const months = [Date.UTC(2026, 0, 1) / 1_000, Date.UTC(2026, 1, 1) / 1_000];
  expect(axisTimes(months, true)).toEqual(["2026", "1 Feb"]);
});

test("local times are the clock's, with the date unless it is today", () => {
  const noon = new Date(2026, 10, 15, 12, 5, 9, 7).getTime();
  expect([localTime(noon), clock(noon), clockTime(noon)]).toEqual([
    "15 Nov 2026, 12:05:09",
    "12:05:09",
    "15 Nov 2026, 12:05:09.007",
  ]);
  const today = new Date().setHours(12, 5, 9, 123);
  expect(clockTime(today)).toBe("12:05:09.123");
  expect(utcDay(Date.UTC(2026, 10, 15, 23))).toBe("15 Nov 2026");
});

test("an input of a time has the local one, to the minute or the second, and leads back to the instant", () => {
  const at = new Date(2026, 10, 15, 16, 41, 52).getTime();
  const time = new Date(at).toISOString();
  expect([
    localInput(at),
    localInput(at, { hasSeconds: true }),
    localInputOf(time, { hasSeconds: true }),
  ]).toEqual(["2026-11-15T16:41", "2026-11-15T16:41:52", "2026-11-15T16:41:52"]);
  expect([localInputOf(time), localInputOf(null), localInputOf("never")]).toEqual([
    "2026-11-15T16:41",
    "",
    "",
  ]);
  expect([timeOfInput("2026-11-15T16:41:52"), timeOfInput("")]).toEqual([time, null]);
});

test("large numbers are short, and words begin in capitals", () => {
  expect([0, 999, 1_254, 1_000_000].map(compact)).toEqual(["0", "999", "1.25K", "1M"]);
  expect([capitalized("pets"), capitalized("x"), capitalized("")]).toEqual(["Pets", "X", ""]);
});
