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
  expect<unknown>(series).toEqual([
    { label: "success", tone: "series", symbol: "●", values: [null, 9, 0, 5] },
    { label: "error", tone: "muted", symbol: "◆", values: [null, 1, 0, 0] },
    { label: "limited", tone: "limited", symbol: "▲", values: [null, 4, 0, 0] },
    { label: "banned", tone: "error", symbol: "■", values: [null, 2, 0, 0] },
  ]);
  // The first interval begins before the period does, and a key has data from the interval of its creation.
  const hours: UsageResponse = { ...HISTORY, by: "hour", since: "2026-11-15T22:30:00.000Z" };
  const first = Date.UTC(2026, 10, 15, 22) / 1_000;
  const ofHours = (createdAt: string) => usageSeries(hours, createdAt, 1);
  expect(ofHours("2026-11-15T22:59:59.999Z").times).toEqual([first, first + 3_600]);
  const isKnown = (createdAt: string) => ofHours(createdAt).series[0]?.values.map((value) => value !== null);
  expect([isKnown("2026-11-15T22:59:59.999Z"), isKnown("2026-11-15T23:00:00.000Z")]).toEqual([
    [true, true],
    [false, true],
  ]);
});

test("the daily limit is among the series if more than a third of it is admitted in a day, and never by hour", () => {
  const limitOf = (history: UsageResponse, perDay: number) =>
    usageSeries(history, "2026-11-13T09:00:00.000Z", perDay).series.find(
      ({ label }) => label === "daily limit",
    );
  expect(limitOf(HISTORY, 29)).toEqual({
    label: "daily limit",
    tone: "muted",
    symbol: "– –",
    isDashed: true,
    values: [null, 29, 29, 29],
  });
  expect(limitOf(HISTORY, 30)).toBeUndefined();
  expect(limitOf({ ...HISTORY, by: "hour" }, 10)).toBeUndefined();
});

test("counts are added up for the period and for each operation", () => {
  expect(sumOfRequests(HISTORY.items)).toEqual({ admitted: 15, limited: 4, banned: 2, errors: 1 });
  const [, ...others] = HISTORY.items;
  expect(byOperation({ ...HISTORY, items: [...others, ...HISTORY.items.slice(0, 1)] })).toEqual(
    byOperation(HISTORY),
  );
  expect(byOperation(HISTORY)).toEqual([
    { operation: "listPets", admitted: 15, limited: 0, banned: 0, errors: 1 },
    { operation: "none", admitted: 0, limited: 4, banned: 2, errors: 0 },
  ]);
});
