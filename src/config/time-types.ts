import { duration, type ValueType } from "./value-types.ts";

const DAY = 86_400_000;

/** A time, or how long ago it was; both in milliseconds. */
export type PastTime = { readonly at: number } | { readonly agoMs: number };

const ago = duration({ min: 0, max: 3_650 * DAY });
/** A time without a zone would mean another time on another machine. */
const DATE_TIME =
  /^(?<date>\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** A date is the beginning of that day in UTC. */
export const pastTime: ValueType<PastTime> = {
  placeholder: "TIME",
  expected:
    "a date such as 2026-11-15 (UTC), a time such as 2026-11-15T09:30:00Z, or how long ago it was, such as 90s, 24h or 30d",
  parse(text) {
    const agoMs = ago.parse(text);
    if (agoMs !== undefined) return { agoMs };
    const at = parseDateTime(text);
    return at === undefined ? undefined : { at };
  },
  format: (value) => ("at" in value ? new Date(value.at).toISOString() : ago.format(value.agoMs)),
};

function parseDateTime(text: string): number | undefined {
  const { date } = DATE_TIME.exec(text)?.groups ?? {};
  const at = Date.parse(text);
  if (date === undefined || Number.isNaN(at)) return undefined;
  // Date.parse takes 30 February for 2 March.
  return new Date(Date.parse(date)).toISOString().startsWith(date) ? at : undefined;
}

export function timeOf(value: PastTime, now: number): number {
  return "at" in value ? value.at : now - value.agoMs;
}

/** From now on, or null for no end. */
export function durationOrNever(bounds: { min: number; max: number }): ValueType<number | null> {
  const length = duration(bounds);
  return {
    ...length,
    range: `${length.range}, or never`,
    expected: `never, or ${length.expected}`,
    // Undefined is an invalid text.
    parse: (text) => (text === "never" ? null : length.parse(text)),
    format: (value) => (value === null ? "never" : length.format(value)),
  };
}
