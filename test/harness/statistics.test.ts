import { expect, test } from "bun:test";
import { median, ratioOf } from "../../harness/statistics.ts";
import { patternOf } from "../../harness/wrk.ts";

test("the median of an even number of values lies between the middle two", () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
});

test("a ratio is taken round by round, so that a disturbed round counts once", () => {
  expect(ratioOf([90, 45, 90], [100, 50, 200])).toEqual({ median: 0.9, min: 0.45, max: 0.9 });
});

test("a pattern has the given proportions and spreads rare requests evenly", () => {
  const pattern = patternOf([90, 9, 1]);
  expect(pattern.length).toBe(100);
  expect([0, 1, 2].map((part) => pattern.filter((at) => at === part).length)).toEqual([90, 9, 1]);
  const gets = pattern.flatMap((part, at) => (part === 1 ? [at] : []));
  expect(Math.min(...gets.slice(1).map((at, i) => at - (gets[i] ?? 0)))).toBeGreaterThanOrEqual(8);
});
