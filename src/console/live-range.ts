/* What part of the live series the overview shows. */

import {
  byOutcome,
  greatest,
  LIVE_RANGE_MS,
  LIVE_RANGES,
  type LiveRange,
  sum,
} from "../domain/live-series.ts";
import type { Overview, ServerList } from "./admin-api.ts";
import { clock } from "../pages/format.ts";

export const RANGE_TEXTS: Readonly<Record<LiveRange, string>> = {
  "15m": "15 min",
  "1h": "1 h",
  "6h": "6 h",
  "24h": "24 h",
};

export interface ShownRange {
  /** What is loaded. */
  readonly range: LiveRange;
  /** The part of it that is shown, in Unix seconds; by default all. */
  readonly part?: { readonly from: number; readonly until: number };
  /** The parameter of the URL. */
  readonly value: string;
  readonly text: string;
}

export const partValue = (from: number, until: number): string => `${from}-${until}`;

/** The range of a URL without one. A server that started less than an hour ago has no data of an hour. */
export const usualRange = (ageMs: number): LiveRange => (ageMs < LIVE_RANGE_MS["1h"] ? "15m" : "1h");

/** The parameter is a range, or two times: the part of the shortest range that has them, while there is one. */
export function rangeOf(value: string | null, nowMs: number, usual: LiveRange = "1h"): ShownRange {
  const [, from = 0, until = 0] = (/^(\d{1,12})-(\d{1,12})$/.exec(value ?? "") ?? []).map(Number);
  const range = LIVE_RANGES.find((each) => from < until && from > (nowMs - LIVE_RANGE_MS[each]) / 1_000);
  if (range !== undefined && value !== null)
    return { range, part: { from, until }, value, text: `${clock(from * 1_000)} – ${clock(until * 1_000)}` };
  const known = LIVE_RANGES.find((each) => each === value) ?? usual;
  return { range: known, value: known, text: RANGE_TEXTS[known] };
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

/** The series of the part, and their totals. A percentile of a part is the greatest of its steps. */
export function shownPartOf(data: Overview, { part }: ShownRange): Overview {
  if (part === undefined) return data;
  const { times } = data;
  const shown = <T>(values: readonly T[]) =>
    values.filter((_, i) => (times[i] ?? 0) >= part.from && (times[i] ?? 0) <= part.until);
  const requests = byOutcome((outcome) => shown(data.requests[outcome]));
  const totals = byOutcome((outcome) => sum(requests[outcome]));
  const [p50, p99] = [shown(data.p50), shown(data.p99)];
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
