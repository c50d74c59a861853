import {
  INTERVAL_LENGTH_MS,
  type RequestCounts,
  requestsOf,
  sumOfRequests,
} from "../domain/usage-history.ts";
import type { ResponseOf } from "../operator/operations.ts";
import type { PlotProps } from "./components/plot-data.ts";

export type UsageResponse = ResponseOf<"getKeyUsage">;
type Row = UsageResponse["items"][number];

/** The counts of each operation, the most used first. */
export function byOperation({ items }: UsageResponse): readonly (RequestCounts & Pick<Row, "operation">)[] {
  const groups = Map.groupBy(items, ({ operation }) => operation);
  return Array.from(groups, ([operation, rows]) => ({ operation, ...sumOfRequests(rows) })).toSorted(
    (a, b) => requestsOf(b) - requestsOf(a),
  );
}

/**
 * An interval without requests is zero, and one before the key existed has no data. The limit of a day is among them
 * if the admitted requests of a day come near: bars below a limit that is far away would be low.
 */
export function usageSeries(
  { by, since, until, items }: UsageResponse,
  createdAt: string,
  perDay: number,
): Pick<PlotProps, "times" | "series"> {
  const length = INTERVAL_LENGTH_MS[by];
  const first = Math.floor(Date.parse(since) / length) * length;
  const end = Date.parse(until);
  const rows = Map.groupBy(items, ({ start }) => Date.parse(start));
  const starts: number[] = [];
  for (let start = first; start < end; start += length) starts.push(start);
  const created = Date.parse(createdAt) - length;
  const valuesOf = (value: (counts: RequestCounts) => number) =>
    starts.map((start) => (start <= created ? null : value(sumOfRequests(rows.get(start) ?? []))));
  const isNear = by === "day" && Math.max(...valuesOf(({ admitted }) => admitted).map(Number)) > perDay / 3;
  return {
    times: starts.map((start) => start / 1_000),
    series: [
      {
        label: "success",
        tone: "series",
        symbol: "●",
        values: valuesOf(({ admitted, errors }) => admitted - errors),
      },
      { label: "error", tone: "muted", symbol: "◆", values: valuesOf(({ errors }) => errors) },
      { label: "limited", tone: "limited", symbol: "▲", values: valuesOf(({ limited }) => limited) },
      { label: "banned", tone: "error", symbol: "■", values: valuesOf(({ banned }) => banned) },
      ...(isNear
        ? [
            {
              label: "daily limit",
              tone: "muted",
              symbol: "– –",
              isDashed: true,
              values: valuesOf(() => perDay),
            } as const,
          ]
        : []),
    ],
  };
}
