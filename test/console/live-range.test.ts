import { expect, test } from "bun:test";
import type { Overview } from "../../src/operator/operations.ts";
import { shownPartOf, rangeOf, usualRange } from "../../src/console/live-range.ts";

const NOW_S = Date.UTC(2026, 10, 18, 12) / 1_000;
const shown = (value: string | null) => rangeOf(value, NOW_S * 1_000);

test("the range of a URL is one of four, by default an hour", () => {
  expect(["15m", "24h", null, "toString", "2h"].map((value) => shown(value).range)).toEqual([
    "15m",
    "24h",
    "1h",
    "1h",
    "1h",
  ]);
});

test("without a range, a server that is younger than an hour has the shortest", () => {
  expect([0, 3_599_999, 3_600_000, Number.NaN].map(usualRange)).toEqual(["15m", "15m", "1h", "1h"]);
  expect(rangeOf("7d", NOW_S * 1_000, "15m")).toMatchObject({ range: "15m", text: "15 min" });
});

test("two times are a part of the shortest range that has them", () => {
  const ago = (from: number, until: number) => shown(`${NOW_S - from}-${NOW_S - until}`);
  expect(ago(600, 300)).toMatchObject({ range: "15m", part: { from: NOW_S - 600, until: NOW_S - 300 } });
  expect(ago(1_200, 0).range).toBe("1h");
  expect(ago(20_000, 10_000).range).toBe("6h");
  expect(ago(80_000, 10_000).range).toBe("24h");
  // What is older than a day, or ends before it begins, is none.
  expect([ago(90_000, 80_000).part, ago(300, 600).part, shown("7-").part]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("a part has its own series and totals, and the greatest percentile of its steps", () => {
  const values = [1, 2, null, 4];
  const none = [0, 0, null, 0];
  const requests = {
    success: values,
    clientError: none,
    limited: [5, 6, null, 0],
    banned: none,
    serverError: none,
  };
  const totals = {
    requests: 18,
    success: 7,
    clientError: 0,
    limited: 11,
    banned: 0,
    serverError: 0,
    p50: 1,
    p99: 9,
  };
  const data: Overview = {
    range: "15m",
    step: 5,
    times: [NOW_S - 15, NOW_S - 10, NOW_S - 5, NOW_S],
    requests,
    p50: values,
    p99: [9, 3, null, 5],
    connections: values,
    totals,
    before: totals,
    missing: [],
    bannedKeys: 0,
    deprecatedKeys: 0,
    topKeys: [],
  };
  expect(shownPartOf(data, shown("15m"))).toBe(data);
  const part = shownPartOf(data, shown(`${NOW_S - 10}-${NOW_S - 5}`));
  expect(part).toMatchObject({ times: [NOW_S - 10, NOW_S - 5], p99: [3, null], before: null });
  expect(part.requests.limited).toEqual([6, null]);
  expect(part.totals).toMatchObject({ requests: 8, success: 2, limited: 6, p50: 2, p99: 3 });
});
