/** Lengths of time in milliseconds. A day has no hour more or less: the service counts in UTC. */
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
