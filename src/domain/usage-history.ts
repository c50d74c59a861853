import type { PlanName } from "./plans.ts";
import { DAY_MS, HOUR_MS } from "../text/time-units.ts";

export const HOURLY_USAGE_DAYS = 35;
export const DAILY_USAGE_DAYS = 400;

/** The requests of one API key. */
export interface RequestCounts {
  /** The requests that the rate limiter allowed, with any status. */
  readonly admitted: number;
  /** The 429 responses with `rate_limited`. */
  readonly limited: number;
  /** The 429 responses with `key_banned`. */
  readonly banned: number;
  /** The admitted requests with a 4xx or 5xx response. */
  readonly errors: number;
}

export const COUNTS = ["admitted", "limited", "banned", "errors"] as const;
export const NO_REQUESTS: RequestCounts = { admitted: 0, limited: 0, banned: 0, errors: 0 };

export function sumOfRequests(rows: Iterable<RequestCounts>): RequestCounts {
  const sum = { ...NO_REQUESTS };
  for (const row of rows) for (const name of COUNTS) sum[name] += row[name];
  return sum;
}

/** The overview counts keys that called a deprecated operation within so many days. */
export const DEPRECATED_USE_DAYS = 30;

/** The rate limiter decides before a request is routed, so an operation has no limited and no banned requests. */
export interface OperationCounts extends Pick<RequestCounts, "admitted" | "errors"> {
  readonly operation: string;
}

/** Requests of one key in one hour, to be added to those that are stored. */
export interface KeyCounts extends RequestCounts {
  readonly keyId: number;
  /** The time of the last request, in milliseconds since the epoch. */
  readonly lastUsedAt: number;
  /** The counts of each operation. Requests without an operation are left out. */
  readonly byOperation: readonly OperationCounts[];
}

/** Counts that are added in one transaction. After an error they may have been added, so they are sent again. */
export interface UsageBatch {
  /** The process that counted them. */
  readonly writer: string;
  /** The number of the batch in that process: 1, 2, 3, … A batch is added once. */
  readonly sequence: number;
  /** The start of the hour (UTC), in milliseconds since the epoch. */
  readonly hour: number;
  /** The counts of each key. */
  readonly keys: readonly KeyCounts[];
}

export const USAGE_INTERVALS = ["hour", "day"] as const;
export type UsageInterval = (typeof USAGE_INTERVALS)[number];

/** Times are milliseconds since the epoch. */
export interface UsagePeriod {
  readonly by: UsageInterval;
  /** A time within the first interval. */
  readonly since: number;
  /** A time within the last interval. */
  readonly until: number;
}

export interface UsageQuery extends UsagePeriod {
  readonly keyId: number;
}

export interface KeyTotalsQuery extends UsagePeriod {
  /** The number of keys; by default all. */
  readonly limit?: number;
}

/** Counts of one key and one operation in one hour or day (UTC). */
export interface UsageRow extends RequestCounts {
  readonly keyId: number;
  /** `none` is for requests that are rejected before they are routed, or whose path is unknown. */
  readonly operation: string;
  /** The start of the interval, in milliseconds since the epoch. */
  readonly start: number;
}

interface KeyCountsSum extends RequestCounts {
  readonly keyId: number;
}

export interface KeyTotals extends KeyCountsSum {
  /** Null if there is no such key. */
  readonly name: string | null;
  readonly plan: PlanName | null;
  /** When the key was last used, also after the period, in milliseconds since the epoch. */
  readonly lastUsedAt: number | null;
}

export const INTERVAL_LENGTH_MS: Readonly<Record<UsageInterval, number>> = { hour: HOUR_MS, day: DAY_MS };

/** The start of the hour or day (UTC) that contains a time. */
export function intervalStart(by: UsageInterval, time: number): number {
  return Math.floor(time / INTERVAL_LENGTH_MS[by]) * INTERVAL_LENGTH_MS[by];
}

const DEFAULT_INTERVALS: Readonly<Record<UsageInterval, number>> = { hour: 24, day: 30 };

/** The start of a period of 24 hours or 30 days whose last interval contains `until`. */
export function defaultSince(by: UsageInterval, until: number): number {
  return intervalStart(by, until) - (DEFAULT_INTERVALS[by] - 1) * INTERVAL_LENGTH_MS[by];
}

/** Yields the starts of the intervals of a period, ascending, from `first` to `last`, which are stored. */
export function* intervalStarts(
  { by, since, until }: UsagePeriod,
  { first, last }: { readonly first: number; readonly last: number },
): Generator<number> {
  const end = Math.min(intervalStart(by, until), last);
  for (let start = Math.max(intervalStart(by, since), first); start <= end; start += INTERVAL_LENGTH_MS[by])
    yield start;
}

/** Returns the time before which intervals are deleted by their start. */
export function retainedSince(by: UsageInterval, now: number): number {
  return intervalStart(by, now) - (by === "hour" ? HOURLY_USAGE_DAYS : DAILY_USAGE_DAYS) * DAY_MS;
}

/** Returns the number of all requests, including rejected ones. */
export function requestsOf({ admitted, limited, banned }: RequestCounts): number {
  return admitted + limited + banned;
}

/** Compares keys so that those with the most requests come first. */
export function compareByRequests(a: KeyCountsSum, b: KeyCountsSum): number {
  return requestsOf(b) - requestsOf(a) || a.keyId - b.keyId;
}
