/* The live series: requests of the last hours by their outcomes, in steps. Each server has its own in memory. */

import { DAY_MS, HOUR_MS, MINUTE_MS } from "../text/time-units.ts";

/** How far the series go back. */
export const LIVE_RANGES = ["15m", "1h", "6h", "24h"] as const;
export type LiveRange = (typeof LIVE_RANGES)[number];

export const LIVE_RANGE_MS: Readonly<Record<LiveRange, number>> = {
  "15m": 15 * MINUTE_MS,
  "1h": HOUR_MS,
  "6h": 6 * HOUR_MS,
  "24h": DAY_MS,
};

/** The possible outcomes of a request. Each request has exactly one. */
export type RequestOutcome = "success" | "clientError" | "limited" | "banned" | "serverError";
/** Numbers of requests, health checks excluded. */
export type OutcomeTotals = Readonly<Record<RequestOutcome, number>>;

export function byOutcome<T>(of: (outcome: RequestOutcome) => T): Record<RequestOutcome, T> {
  return {
    success: of("success"),
    clientError: of("clientError"),
    limited: of("limited"),
    banned: of("banned"),
    serverError: of("serverError"),
  };
}

/** The values of a series by step; null for a step without data. */
export type SeriesValues = readonly (number | null)[];

export function sum(values: SeriesValues): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}

/** Returns null without data. */
export function greatest(values: SeriesValues): number | null {
  return values.reduce((max, value) => (value !== null && value >= (max ?? 0) ? value : max), null);
}
