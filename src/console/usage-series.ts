import type { ResponseOf } from "../operator/operations.ts";
import type { Series } from "./series.ts";

export type KeyUsageHistory = ResponseOf<"getKeyUsage">;
type Row = KeyUsageHistory["items"][number];

const LENGTH_MS = { hour: 3_600_000, day: 86_400_000 } as const;

export interface Counts {
  readonly admitted: number;
  readonly limited: number;
  readonly banned: number;
  readonly errors: number;
}

export interface OperationCounts extends Counts {
  readonly operation: Row["operation"];
}

const NOTHING: Counts = { admitted: 0, limited: 0, banned: 0, errors: 0 };

function added(a: Counts, b: Counts): Counts {
  return {
    admitted: a.admitted + b.admitted,
    limited: a.limited + b.limited,
    banned: a.banned + b.banned,
    errors: a.errors + b.errors,
  };
}

export function totalOf({ items }: KeyUsageHistory): Counts {
  return items.reduce<Counts>(added, NOTHING);
}

/** Most used first. */
export function byOperation({ items }: KeyUsageHistory): readonly OperationCounts[] {
  const totals = new Map<Row["operation"], Counts>();
  for (const row of items) totals.set(row.operation, added(totals.get(row.operation) ?? NOTHING, row));
  return Array.from(totals, ([operation, counts]) => ({ operation, ...counts })).toSorted(
    (a, b) => b.admitted + b.limited + b.banned - (a.admitted + a.limited + a.banned),
  );
}

export interface UsageSeries {
  /** Unix seconds of the start of each interval. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
}

/** Intervals without requests are zero. Those before the key existed have no data. */
export function usageSeries({ by, since, until, items }: KeyUsageHistory, createdAt: string): UsageSeries {
  const length = LENGTH_MS[by];
  const first = Math.floor(Date.parse(since) / length) * length;
  const end = Date.parse(until);
  const counts = new Map<number, Counts>();
  for (const row of items) {
    const start = Date.parse(row.start);
    counts.set(start, added(counts.get(start) ?? NOTHING, row));
  }
  const starts: number[] = [];
  for (let start = first; start < end; start += length) starts.push(start);
  const created = Date.parse(createdAt) - length;
  const valuesOf = (value: (counts: Counts) => number) =>
    starts.map((start) => (start <= created ? null : value(counts.get(start) ?? NOTHING)));
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
