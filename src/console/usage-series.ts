import { LENGTH_MS, type RequestCounts } from "../domain/usage-history.ts";
import type { ResponseOf } from "../operator/operations.ts";
import type { PlotProps } from "./components/plots.tsx";

export type UsageResponse = ResponseOf<"getKeyUsage">;
type Row = UsageResponse["items"][number];

export const COUNTS = [
  "admitted",
  "limited",
  "banned",
  "errors",
] as const satisfies readonly (keyof RequestCounts)[];

export function totalOf(rows: readonly RequestCounts[]): RequestCounts {
  const sum = (name: (typeof COUNTS)[number]) => rows.reduce((total, row) => total + row[name], 0);
  return { admitted: sum("admitted"), limited: sum("limited"), banned: sum("banned"), errors: sum("errors") };
}

/** Most used first. */
export function byOperation({ items }: UsageResponse): readonly (RequestCounts & Pick<Row, "operation">)[] {
  const groups = Map.groupBy(items, ({ operation }) => operation);
  return Array.from(groups, ([operation, rows]) => ({ operation, ...totalOf(rows) })).toSorted(
    (a, b) => b.admitted + b.limited + b.banned - (a.admitted + a.limited + a.banned),
  );
}

/** By interval. Those without requests are zero, and those before the key existed have no data. */
export function usageSeries(
  { by, since, until, items }: UsageResponse,
  createdAt: string,
): Pick<PlotProps, "times" | "series"> {
  const length = LENGTH_MS[by];
  const first = Math.floor(Date.parse(since) / length) * length;
  const end = Date.parse(until);
  const rows = Map.groupBy(items, ({ start }) => Date.parse(start));
  const starts: number[] = [];
  for (let start = first; start < end; start += length) starts.push(start);
  const created = Date.parse(createdAt) - length;
  const valuesOf = (value: (counts: RequestCounts) => number) =>
    starts.map((start) => (start <= created ? null : value(totalOf(rows.get(start) ?? []))));
  return {
    times: starts.map((start) => start / 1_000),
    series: [
      {
        label: "success",
        tone: "ok",
        symbol: "●",
        values: valuesOf(({ admitted, errors }) => admitted - errors),
      },
      { label: "error", tone: "muted", symbol: "◆", values: valuesOf(({ errors }) => errors) },
      { label: "limited", tone: "limited", symbol: "▲", values: valuesOf(({ limited }) => limited) },
      { label: "banned", tone: "error", symbol: "■", values: valuesOf(({ banned }) => banned) },
    ],
  };
}
