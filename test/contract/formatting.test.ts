import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { duration, grouped, longDate, plural } from "../../src/api/formatting.ts";

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

test("durations have the largest unit that needs no fraction", () => {
  const durations = [86_400_000, 300_000, 90_000, 3_600_000, 1_000].map(duration);
  expect(durations).toEqual(["24 hours", "5 minutes", "90 seconds", "1 hour", "1 second"]);
});

test("one thing has no plural", () => {
  expect([plural(1, "day"), plural(0, "day"), plural(2, "day")]).toEqual(["1 day", "0 days", "2 days"]);
});
