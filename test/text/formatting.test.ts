import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  formatTime,
  longDuration,
  grouped,
  longDate,
  plural,
  shortDuration,
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

test("durations have the largest unit that needs no fraction", () => {
  const durations = [86_400_000, 300_000, 90_000, 3_600_000, 1_000].map(longDuration);
  expect(durations).toEqual(["24 hours", "5 minutes", "90 seconds", "1 hour", "1 second"]);
});

test("one thing has no plural", () => {
  expect([plural(1, "day"), plural(0, "day"), plural(2, "day")]).toEqual(["1 day", "0 days", "2 days"]);
});

test("on pages, durations are minutes from 60 s, and hours or days if there are two", () => {
  const seconds = [-1, 0, 1.9, 59.9, 60, 119, 120, 3_599, 7_199, 7_200, 86_399, 3 * 86_400];
  const texts = seconds.map((each) => shortDuration(each * 1_000));
  expect(texts.join(", ")).toBe("0 s, 0 s, 1 s, 59 s, 1 min, 1 min, 2 min, 59 min, 119 min, 2 h, 23 h, 3 d");
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
