import { expect, test } from "bun:test";
import { byOperation, type UsageResponse, usageSeries } from "../../src/console/usage-series.ts";
import { sumOfRequests } from "../../src/domain/usage-history.ts";

type Row = UsageResponse["items"][number];
const row = (day: string, counts: Partial<Row> & Pick<Row, "operation">): Row => ({
  start: `${day}T00:00:00.000Z`,
  admitted: 0,
  limited: 0,
  banned: 0,
  errors: 0,
  ...counts,
});

const HISTORY: UsageResponse = {
  by: "day",
  since: "2026-11-12T00:00:00.000Z",
  until: "2026-11-16T00:00:00.000Z",
  items: [
    row("2026-11-13", { operation: "listPets", admitted: 10, errors: 1 }),
    row("2026-11-13", { operation: "none", limited: 4, banned: 2 }),
    row("2026-11-15", { operation: "listPets", admitted: 5 }),
  ],
};

test("a day without requests is zero, and a day before the key existed has no data", () => {
  const { times, series } = usageSeries(HISTORY, "2026-11-13T09:00:00.000Z", 1_000);
  expect(times).toEqual([12, 13, 14, 15].map((day) => Date.UTC(2026, 10, day) / 1_000));
  expect(series.map(({ label, values }) => [label].concat(values.map(String)))).toEqual([
    ["success", "null", "9", "0", "5"],
    ["error", "null", "1", "0", "0"],
    ["limited", "null", "4", "0", "0"],
    ["banned", "null", "2", "0", "0"],
  ]);
});

test("the daily limit is among the series if more than a third of it is admitted in a day, and never by hour", () => {
  const limitOf = (history: UsageResponse, perDay: number) =>
    usageSeries(history, "2026-11-13T09:00:00.000Z", perDay).series.find(
      ({ label }) => label === "daily limit",
    )?.values;
  expect(limitOf(HISTORY, 29)).toEqual([null, 29, 29, 29]);
  expect(limitOf(HISTORY, 30)).toBeUndefined();
  expect(limitOf({ ...HISTORY, by: "hour" }, 10)).toBeUndefined();
});

test("counts are added up for the period and for each operation", () => {
  expect(sumOfRequests(HISTORY.items)).toEqual({ admitted: 15, limited: 4, banned: 2, errors: 1 });
  expect(byOperation(HISTORY)).toEqual([
    { operation: "listPets", admitted: 15, limited: 0, banned: 0, errors: 1 },
    { operation: "none", admitted: 0, limited: 4, banned: 2, errors: 0 },
  ]);
});
