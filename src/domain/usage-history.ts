import type { OperationId } from "../contract/operations.ts";

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

/** A request that is rejected before it is routed, or whose path is unknown, has no operation. */
export type CountedOperation = OperationId | "none";

/** Counts of one key in one hour, to be added to those that are stored. */
export interface HourlyCounts extends RequestCounts {
  readonly keyId: number;
  readonly operation: CountedOperation;
  /** The start of the hour (UTC), in milliseconds since the epoch. */
  readonly hour: number;
  /** When the key was last used in that hour, in milliseconds since the epoch. */
  readonly lastUsedAt: number;
}

export type UsageInterval = "hour" | "day";

export interface UsageQuery {
  /** All keys if undefined. */
  readonly keyId?: number;
  readonly by: UsageInterval;
  /** From the interval that contains this time on. */
  readonly since: number;
  /** Up to the interval that contains this time. */
  readonly until: number;
}

/** Counts of one key and one operation in one hour or day (UTC). */
export interface UsageRow extends RequestCounts {
  readonly keyId: number;
  readonly operation: CountedOperation;
  /** The start of the interval, in milliseconds since the epoch. */
  readonly start: number;
}

export const HOURLY_USAGE_DAYS = 35;
export const DAILY_USAGE_DAYS = 400;
