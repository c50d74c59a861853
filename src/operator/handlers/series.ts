import { byLabel, OUTCOMES } from "../../observe/request-metrics.ts";
import type { ServerSeries } from "../operations.ts";

type LiveSeries = Omit<ServerSeries, "server" | "range">;
type Values = readonly (number | null)[];

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const greatest = (values: readonly number[]) => Math.max(...values);

/**
 * The series of all servers together, at the times of the first: sums of counts, and the response times of the slowest
 * server. The last step has no data until every server has it, because their clocks differ a little.
 */
export function combinedSeries(own: LiveSeries, others: readonly LiveSeries[]): LiveSeries {
  if (others.length === 0) return own;
  const all = [own, ...others];
  const indexes = all.map(({ times }) => new Map(times.map((time, index) => [time, index])));
  const lastTime = own.times.at(-1) ?? 0;
  const isComplete = all.every(({ times }) => (times.at(-1) ?? 0) >= lastTime);
  const combine = (
    valuesOf: (series: LiveSeries) => Values,
    combined: (values: readonly number[]) => number,
  ) => {
    const values = all.map(valuesOf);
    return own.times.map((time) => {
      if (time === lastTime && !isComplete) return null;
      const known = values.flatMap((each, server) => each[indexes[server]?.get(time) ?? -1] ?? []);
      return known.length === 0 ? null : combined(known);
    });
  };
  const before = all.flatMap((each) => each.before ?? []);
  return {
    ...own,
    requests: byLabel(OUTCOMES, (outcome) => combine(({ requests }) => requests[outcome], sum)),
    p50: combine(({ p50 }) => p50, greatest),
    p99: combine(({ p99 }) => p99, greatest),
    connections: combine(({ connections }) => connections, sum),
    totals: combinedTotals(all.map(({ totals }) => totals)),
    before: before.length === all.length ? combinedTotals(before) : null,
  };
}

function combinedTotals(all: readonly LiveSeries["totals"][]): LiveSeries["totals"] {
  const slowest = (name: "p50" | "p99") => {
    const known = all.flatMap((totals) => totals[name] ?? []);
    return known.length === 0 ? null : greatest(known);
  };
  return {
    ...byLabel(["requests", ...OUTCOMES], (name) => sum(all.map((totals) => totals[name]))),
    p50: slowest("p50"),
    p99: slowest("p99"),
  };
}
