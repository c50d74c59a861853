import { byOutcome, greatest, type SeriesValues, sum } from "../../domain/live-series.ts";
import type { ServerSeries } from "../operations.ts";
import type { Services } from "../services.ts";
import type { AdminHandlers } from "./context.ts";

type LiveSeries = Omit<ServerSeries, "server" | "range">;

export function seriesHandlers({ metrics, servers }: Pick<Services, "metrics" | "servers">) {
  return {
    getSeries: ({ query: { range = "1h" } }) => ({
      range,
      ...metrics.live.read(range),
      server: servers.self.id,
    }),
  } satisfies Partial<AdminHandlers>;
}

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
    valuesOf: (series: LiveSeries) => SeriesValues,
    combined: (values: SeriesValues) => number | null,
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
    requests: byOutcome((outcome) => combine(({ requests }) => requests[outcome], sum)),
    p50: combine(({ p50 }) => p50, greatest),
    p99: combine(({ p99 }) => p99, greatest),
    connections: combine(({ connections }) => connections, sum),
    totals: combinedTotals(all.map(({ totals }) => totals)),
    before: before.length === all.length ? combinedTotals(before) : null,
  };
}

function combinedTotals(all: readonly LiveSeries["totals"][]): LiveSeries["totals"] {
  return {
    requests: sum(all.map(({ requests }) => requests)),
    ...byOutcome((outcome) => sum(all.map((totals) => totals[outcome]))),
    p50: greatest(all.map(({ p50 }) => p50)),
    p99: greatest(all.map(({ p99 }) => p99)),
  };
}
