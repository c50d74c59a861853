/*
 * Durations, in milliseconds, as text: `90 seconds` in a sentence, `90 s` where there is little room or time passes,
 * `2.1 ms` as a measurement, `90s` as a user types it.
 */

import { figure, plural } from "./formatting.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "./time-units.ts";

const LONG_UNITS = [
  ["day", DAY_MS, 2],
  ["hour", HOUR_MS, 1],
  ["minute", MINUTE_MS, 1],
] as const;

/** Writes `30 days`, `24 hours`, `90 seconds`: the largest unit without a fraction; days if there are at least two. */
export function longDuration(ms: number): string {
  const unit = LONG_UNITS.find(([, length, least]) => ms >= least * length && ms % length === 0);
  return unit ? plural(ms / unit[1], unit[0]) : plural(ms / 1_000, "second");
}

const SHORT_UNITS = [
  ["d", DAY_MS, 2],
  ["h", HOUR_MS, 2],
  ["min", MINUTE_MS, 1],
] as const;

/** Writes `59 s`, `1 min`, `23 h`, `3 d`, rounded down: hours and days if there are at least two. */
export function shortDuration(ms: number): string {
  const [unit, length] =
    SHORT_UNITS.find(([, length, least]) => ms >= least * length) ?? (["s", 1_000] as const);
  return `${Math.floor(Math.max(0, ms) / length)} ${unit}`;
}

/** Writes `2.1 ms`, `340 µs`, `1.2 s`. */
export function latency(ms: number): string {
  if (ms >= 1_000) return `${figure(ms / 1_000)} s`;
  return ms >= 1 || ms === 0 ? `${figure(ms)} ms` : `${figure(ms * 1_000)} µs`;
}

const TYPED_UNITS = { d: DAY_MS, h: HOUR_MS, m: MINUTE_MS, s: 1_000, ms: 1 } as const;
const TYPED = /^(?<count>0|[1-9]\d{0,11})(?<unit>ms|s|m|h|d)$/;

/** Writes `30d`, `90s`, `0`, as flags and variables have it: the largest unit that divides it. */
export function typedDuration(ms: number): string {
  if (ms === 0) return "0";
  const [unit, length] = Object.entries(TYPED_UNITS).find(([, length]) => ms % length === 0) ?? ["ms", 1];
  return `${ms / length}${unit}`;
}

/** Reads what `typedDuration` writes, and durations in smaller units. Returns undefined for any other text. */
export function parseTypedDuration(text: string): number | undefined {
  if (text === "0") return 0;
  const { count, unit } = TYPED.exec(text)?.groups ?? {};
  return isTypedUnit(unit) ? Number(count) * TYPED_UNITS[unit] : undefined;
}

function isTypedUnit(unit: string | undefined): unit is keyof typeof TYPED_UNITS {
  return Object.hasOwn(TYPED_UNITS, unit ?? "");
}
