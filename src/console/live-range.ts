/* What part of the live series the overview shows. */

import { HOUR_MS } from "../text/time-units.ts";
import type { ServerList, Overview } from "./admin-api.ts";
import { clock } from "../pages/format.ts";

export const RANGES = { "15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h" } as const;
type Range = keyof typeof RANGES;

const LENGTHS_S: readonly (readonly [Range, number])[] = [
  ["15m", 900],
  ["1h", 3_600],
  ["6h", 21_600],
  ["24h", 86_400],
];

export interface ShownRange {
  /** What is loaded. */
  readonly range: Range;
  /** The part of it that is shown, in Unix seconds; by default all. */
  readonly part?: { readonly from: number; readonly until: number };
  /** The parameter of the URL. */
  readonly value: string;
  readonly text: string;
}

export const partValue = (from: number, until: number): string => `${from}-${until}`;

/** The range of a URL without one. A server that started less than an hour ago has no data of an hour. */
export const usualRange = (ageMs: number): Range => (ageMs < HOUR_MS ? "15m" : "1h");

/** The parameter is a range, or two times: the part of the shortest range that has them, while there is one. */
export function rangeOf(value: string | null, nowMs: number, usual: Range = "1h"): ShownRange {
  const [, from = 0, until = 0] = (/^(\d{1,12})-(\d{1,12})$/.exec(value ?? "") ?? []).map(Number);
  const range = LENGTHS_S.find(([, length]) => from < until && from > nowMs / 1_000 - length)?.[0];
  if (range !== undefined && value !== null)
    return { range, part: { from, until }, value, text: `${clock(from * 1_000)} – ${clock(until * 1_000)}` };
  const known = LENGTHS_S.find(([name]) => name === value)?.[0] ?? usual;
  return { range: known, value: known, text: RANGES[known] };
}

/** A server whose figures up to a time, in Unix seconds, are unknown: it has them in memory while it runs. */
export interface Forgotten extends Pick<ServerList["items"][number], "name" | "state"> {
  readonly until: number;
}

/** The servers that do not know all of the times. A single one has no data at all before its start. */
export function forgottenOf(
  { times, requests, step }: Overview,
  servers: ServerList["items"],
): readonly Forgotten[] {
  const first = times[requests.success.findIndex((count) => count !== null)] ?? Infinity;
  return servers.flatMap(({ name, state, startedAt, seenAt }) => {
    const until = Date.parse(state === "lost" ? seenAt : startedAt) / 1_000;
    return servers.length > 1 && state !== "unknown" && until > first + step ? [{ name, state, until }] : [];
  });
}

type Values = readonly (number | null)[];
const sum = (values: Values) => values.reduce<number>((all, each) => all + (each ?? 0), 0);
const greatest = (values: Values) =>
  values.reduce((max, each) => (each !== null && each > (max ?? 0) ? each : max), null);

const byOutcome = <T>(of: (outcome: keyof Overview["requests"]) => T) => ({
  success: of("success"),
  clientError: of("clientError"),
  limited: of("limited"),
  banned: of("banned"),
  serverError: of("serverError"),
});

/** The series of the part, and their totals. A percentile of a part is the greatest of its steps. */
export function shownPartOf(data: Overview, { part }: ShownRange): Overview {
  if (part === undefined) return data;
  const { times } = data;
  const shown = <T>(values: readonly T[]) =>
    values.filter((_, i) => (times[i] ?? 0) >= part.from && (times[i] ?? 0) <= part.until);
  const requests = byOutcome((outcome) => shown(data.requests[outcome]));
  const [p50, p99, totals] = [
    shown(data.p50),
    shown(data.p99),
    byOutcome((outcome) => sum(requests[outcome])),
  ];
  return {
    ...data,
    times: shown(times),
    requests,
    p50,
    p99,
    totals: { requests: sum(Object.values(totals)), ...totals, p50: greatest(p50), p99: greatest(p99) },
    before: null,
  };
}
