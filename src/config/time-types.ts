import { UsageError } from "./usage-error.ts";
import { duration, formatDuration, type ValueType } from "./value-types.ts";

/** An instant, or how long before now. In milliseconds. */
export type PointInTime = { readonly at: number } | { readonly agoMs: number };

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_AND_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/;
const ago = duration({ min: 0, max: 3_650 * 86_400_000 });

/** A date is its start in UTC. */
export const pointInTime: ValueType<PointInTime> = {
  placeholder: "WHEN",
  expected:
    "a date such as 2026-11-01, a time such as 2026-11-01T12:00:00Z, or a duration before now such as 30d",
  range: "2026-11-01, 2026-11-01T12:00:00Z, or 30d for 30 days ago",
  parse(text) {
    const agoMs = ago.parse(text);
    if (agoMs !== undefined) return { agoMs };
    if (!DATE.test(text) && !DATE_AND_TIME.test(text)) return undefined;
    const at = Date.parse(text);
    return Number.isNaN(at) || !isOnCalendar(text) ? undefined : { at };
  },
  format: (value) => ("at" in value ? new Date(value.at).toISOString() : formatDuration(value.agoMs)),
  hint: (text) => ago.hint?.(text),
};

/** There is no 30 February. */
function isOnCalendar(text: string): boolean {
  const date = text.slice(0, "2026-11-01".length);
  const at = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date);
}

export function timeOf(value: PointInTime, now: number): number {
  return "at" in value ? value.at : now - value.agoMs;
}

interface Period<T> {
  readonly since: T;
  readonly until: T;
}

/** The ends that are given, in milliseconds. */
export function periodOf(
  { since, until }: Period<PointInTime | undefined>,
  now: number,
): Partial<Period<number>> | UsageError {
  const start = since && timeOf(since, now);
  const end = until && timeOf(until, now);
  if (start !== undefined && start > (end ?? now)) {
    return new UsageError("--since is after --until; the period must have a length");
  }
  return { ...(start !== undefined && { since: start }), ...(end !== undefined && { until: end }) };
}

/** Null for no end, for which `endless` is the word. */
export function durationOr(
  endless: "never" | "forever",
  bounds: { min: number; max: number },
): ValueType<number | null> {
  const length = duration(bounds);
  return {
    ...length,
    range: `${length.range}, or ${endless}`,
    expected: `${endless}, or ${length.expected}`,
    // Undefined is an invalid text.
    parse: (text) => (text === endless ? null : length.parse(text)),
    format: (value) => (value === null ? endless : length.format(value)),
  };
}
