import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  alternatives,
  countOf,
  figure,
  formatOptionalTime,
  formatTime,
  grouped,
  kibibytes,
  longDate,
  parseOptionalTime,
  plural,
  printable,
  printableJson,
} from "../../src/text/formatting.ts";

test("numbers are grouped as Intl groups them", () => {
  fc.assert(fc.property(fc.maxSafeNat(), (n) => expect(grouped(n)).toBe(n.toLocaleString("en"))));
});

test("dates are written as Intl writes them, in UTC", () => {
  const options = { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" } as const;
  const dates = fc.date({ min: new Date("1000-01-01"), max: new Date("9999-12-31"), noInvalidDate: true });
  fc.assert(
    fc.property(dates, (date) => expect(longDate(date)).toBe(date.toLocaleDateString("en-GB", options))),
  );
});

test("times have years of four digits, as RFC 3339 says", () => {
  const times = [-8.64e15, Date.UTC(2026, 10, 15), 8.64e15].map(formatTime);
  expect(times).toEqual(["0000-01-01T00:00:00.000Z", "2026-11-15T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]);
});

test("a missing time stays missing", () => {
  expect([formatOptionalTime(null), formatOptionalTime(undefined), formatOptionalTime(0)]).toEqual([
    null,
    null,
    "1970-01-01T00:00:00.000Z",
  ]);
  expect([parseOptionalTime(undefined), parseOptionalTime("1970-01-01T00:00:01Z")]).toEqual([
    undefined,
    1_000,
  ]);
});

test("one thing has no plural", () => {
  expect([plural(1, "day"), plural(0, "day"), plural(2, "day")]).toEqual(["1 day", "0 days", "2 days"]);
  expect([countOf(1, "key"), countOf(0, "key"), countOf(10_000, "key")]).toEqual([
    "1 key",
    "0 keys",
    "10,000 keys",
  ]);
});

test("a figure has three digits that matter, two below ten", () => {
  const texts = [0, 0.0412, 2.14, 9.96, 10, 12.34, 99.96, 100, 612.4, 1_234.5].map(figure);
  expect(texts).toEqual(["0", "0.041", "2.1", "10", "10", "12.3", "100", "100", "612", "1,235"]);
});

test("alternatives are joined by commas and a last or", () => {
  const items = ["a", "b", "c"];
  expect([0, 1, 2, 3].map((count) => alternatives(items.slice(0, count)))).toEqual([
    "",
    "a",
    "a or b",
    "a, b or c",
  ]);
  expect(kibibytes(16_384)).toBe("16 KiB");
});

test.each([
  ["👩‍👩‍👧 and 👩🏽‍🚀 and ❤️‍🔥", "👩‍👩‍👧 and 👩🏽‍🚀 and ❤️‍🔥"],
  ["a\u200db", "a\\u{200d}b"],
  ["👩\u200d", "👩\\u{200d}"],
  ["\u200d👩\u200d\u202e👧", "\\u{200d}👩\\u{200d}\\u{202e}👧"],
  ["\u202eexe.gnp\u200b\ufeff", "\\u{202e}exe.gnp\\u{200b}\\u{feff}"],
  ["\u001b[2J\u009b1A\ud800", "\\u{1b}[2J\\u{9b}1A\\u{d800}"],
])("%j is printable as %j", (text, shown) => {
  expect(printable(text)).toBe(shown);
  expect(printable(shown)).toBe(shown);
  expect(JSON.parse(printableJson(JSON.stringify(text)))).toBe(text);
});

test("printable JSON keeps its line breaks", () => {
  expect(printableJson('[\n"a\u202e"\n]')).toBe('[\n"a\\u202e"\n]');
});
