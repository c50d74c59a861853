import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  formatTime,
  grouped,
  longDate,
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

test("one thing has no plural", () => {
  expect([plural(1, "day"), plural(0, "day"), plural(2, "day")]).toEqual(["1 day", "0 days", "2 days"]);
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
