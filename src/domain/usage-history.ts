import { DAY_MS } from "./rate-limit.ts";

export const HOUR_MS = 3_600_000;
const HOURLY_USAGE_DAYS = 35;
const DAILY_USAGE_DAYS = 400;

/** Requests of one API key. */
export interface RequestCounts {
  /** Allowed by the rate limiter, whatever their status. */
  readonly admitted: number;
  /** 429 `rate_limited`. */
  readonly limited: number;
  /** 429 `key_banned`. */
  readonly banned: number;
  /** Those of the admitted requests whose response was 4xx or 5xx. */
  readonly errors: number;
}

export const COUNTS = ["admitted", "limited", "banned", "errors"] as const;
export const NO_REQUESTS: RequestCounts = { admitted: 0, limited: 0, banned: 0, errors: 0 };

export function sumOfRequests(rows: Iterable<RequestCounts>): RequestCounts {
  const sum = { ...NO_REQUESTS };
  for (const row of rows) for (const name of COUNTS) sum[name] += row[name];
  return sum;
}

/** A request that is rejected before it is routed, or whose path is unknown, has no operation. */
export type CountedOperation = OperationId | "none";

/** In the order in which they are listed. */
export const OPERATION_IDS = [
  "listPets",
  "createPet",
  "getPet",
  "listOrders",
  "placeOrder",
  "getOrder",
  "updateOrder",
] as const;
/** The operations of the public API. */
export type OperationId = (typeof OPERATION_IDS)[number];

/** Operators see which keys still call them. */
export const DEPRECATED_OPERATIONS: readonly OperationId[] = ["getPet"];

/** How far back the overview looks for calls of them, in days. */
export const DEPRECATED_USE_DAYS = 30;

/** The rate limiter decides before a request is routed, so an operation has no limited and no banned requests. */
export interface OperationCounts extends Pick<RequestCounts, "admitted" | "errors"> {
  readonly operation: OperationId;
}

/** Requests of one key in one hour, to be added to those that are stored. */
export interface KeyCounts extends RequestCounts {
  readonly keyId: number;
  /** In milliseconds since the epoch. */
  readonly lastUsedAt: number;
  /** Requests without an operation are in none of them. */
  readonly byOperation: readonly OperationCounts[];
}

/** Counts that are added together. After an error it is not known whether they were: they are added again. */
export interface UsageBatch {
  /** The process that counted them. */
  readonly writer: string;
  /** 1, 2, 3, … of that process: a batch that was added before is not added again. */
  readonly sequence: number;
  /** The start of the hour (UTC), in milliseconds since the epoch. */
  readonly hour: number;
  /** Each key once. */
  readonly keys: readonly KeyCounts[];
}

export const USAGE_INTERVALS = ["hour", "day"] as const;
export type UsageInterval = (typeof USAGE_INTERVALS)[number];

/** Times are milliseconds since the epoch. */
export interface UsagePeriod {
  readonly by: UsageInterval;
  /** From the interval that contains this time on. */
  readonly since: number;
  /** Up to the interval that contains this time. */
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
  readonly operation: CountedOperation;
  /** The start of the interval, in milliseconds since the epoch. */
  readonly start: number;
}

export interface KeyTotals extends RequestCounts {
  readonly keyId: number;
}

export const INTERVAL_LENGTH_MS: Readonly<Record<UsageInterval, number>> = { hour: HOUR_MS, day: DAY_MS };

/** The start of the hour or day (UTC) that contains a time. */
export function intervalStart(by: UsageInterval, time: number): number {
  return Math.floor(time / INTERVAL_LENGTH_MS[by]) * INTERVAL_LENGTH_MS[by];
}

/** The starts of the intervals of a period, ascending. `first` and `last` are the starts of those that are stored. */
export function* intervalStarts(
  { by, since, until }: UsagePeriod,
  { first, last }: { readonly first: number; readonly last: number },
): Generator<number> {
  const end = Math.min(intervalStart(by, until), last);
  for (let start = Math.max(intervalStart(by, since), first); start <= end; start += INTERVAL_LENGTH_MS[by])
    yield start;
}

/** Intervals that start before this time are deleted. */
export function retainedSince(by: UsageInterval, now: number): number {
  return intervalStart(by, now) - (by === "hour" ? HOURLY_USAGE_DAYS : DAILY_USAGE_DAYS) * DAY_MS;
}

/** All requests, rejected ones too. */
export function requestsOf({ admitted, limited, banned }: RequestCounts): number {
  return admitted + limited + banned;
}

/** The keys with the most requests come first. */
export function compareByRequests(a: KeyTotals, b: KeyTotals): number {
  return requestsOf(b) - requestsOf(a) || a.keyId - b.keyId;
}
