import { expect, test } from "bun:test";
import { combinedSeries } from "../../src/operator/handlers/series.ts";

type Series = Parameters<typeof combinedSeries>[0];

function seriesOf(times: number[], counts: (number | null)[], p99: (number | null)[]): Series {
  const none = counts.map((value) => value && 0);
  const requests = { success: counts, clientError: none, limited: none, banned: none, serverError: none };
  const sum = counts.reduce<number>((total, value) => total + (value ?? 0), 0);
  const totals = { requests: sum, success: sum, clientError: 0, limited: 0, banned: 0, serverError: 0 };
  return {
    step: 5,
    times,
    requests,
    p50: p99,
    p99,
    connections: counts,
    totals: { ...totals, p50: p99[0] ?? null, p99: p99[0] ?? null },
    before: null,
  };
}

test("one server alone has its own series", () => {
  const own = seriesOf([5, 10], [1, 2], [3, 4]);
  expect(combinedSeries(own, [])).toBe(own);
});

test("counts of several servers are added by their times, and response times are those of the slowest", () => {
  const own = seriesOf([5, 10, 15], [1, 2, 3], [7, null, 4]);
  const started = seriesOf([5, 10, 15], [null, 20, 30], [null, null, 9]);
  const ahead = seriesOf([10, 15, 20], [200, 300, 400], [1, 1, 1]);
  const all = combinedSeries(own, [started, ahead]);
  expect(all.times).toEqual([5, 10, 15]);
  expect(all.requests.success).toEqual([1, 222, 333]);
  expect(all.connections).toEqual([1, 222, 333]);
  expect(all.p99).toEqual([7, 1, 9]);
  expect(all.totals).toMatchObject({ requests: 956, success: 956, limited: 0, p99: 7 });
});

test("the period before is known if every server knows it", () => {
  const own = seriesOf([5, 10], [1, 2], [3, 4]);
  const other = seriesOf([5, 10], [10, 20], [5, 6]);
  const before = { ...own, before: own.totals };
  expect(combinedSeries(before, [{ ...other, before: other.totals }]).before).toMatchObject({
    requests: 33,
    p99: 5,
  });
  expect(combinedSeries(before, [other]).before).toBeNull();
});

test("the last step has no data until all servers have it; a step before has those that there are", () => {
  const own = seriesOf([5, 10, 15], [1, 2, 3], [1, 1, 1]);
  const behind = seriesOf([0, 5], [10, 20], [1, 1]);
  expect(combinedSeries(own, [behind]).requests.success).toEqual([21, 2, null]);
});
