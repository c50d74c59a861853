/* Numbers and times that only the pages need. src/text/formatting.ts has the others. */

import { MINUTE_MS } from "../text/time-units.ts";
import { shortDuration } from "../text/durations.ts";
import { figure, formatTime } from "../text/formatting.ts";

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** `1.25K`, for axes. */
export const compact = (value: number): string => COMPACT.format(value);

/** `0.4 %`; a part that is not nothing is never 0. */
export function percent(part: number, whole: number): string {
  if (whole === 0 || part === 0) return "0 %";
  const value = (part / whole) * 100;
  return value < 0.1 ? "< 0.1 %" : `${figure(value)} %`;
}

/** `+12 %`, `−3 %`, `× 25`: a value, compared with an earlier one. */
export function change(value: number, earlier: number): string {
  if (value === earlier) return "as before";
  if (earlier === 0) return "none before";
  const ratio = value / earlier;
  if (ratio >= 10) return `× ${figure(ratio)}`;
  const percents = Math.round(Math.abs(ratio - 1) * 100);
  return percents === 0 ? "± 0 %" : `${ratio > 1 ? "+" : "−"}${percents} %`;
}

/** `in 4 min`, `2 s ago`. */
export function relative(at: number, now: number): string {
  if (Math.abs(now - at) < 1_000) return "now";
  return at > now ? `in ${shortDuration(at - now)}` : `${shortDuration(now - at)} ago`;
}

const LOCAL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const UTC_DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });

/** `15 Nov 2026, 16:41:52`, in the time zone of the browser. */
export const localTime = (at: number): string => LOCAL.format(at);

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** `16:41:52`. */
export const clock = (at: number): string => CLOCK.format(at);

/** `16:41:52.123`, and with its date if that is not today's. */
export function clockTime(at: number): string {
  const isToday = new Date(at).toDateString() === new Date().toDateString();
  return `${isToday ? clock(at) : localTime(at)}.${String(at % 1_000).padStart(3, "0")}`;
}

/** Days of the usage history are days in UTC. */
export const utcDay = (at: number): string => UTC_DAY.format(at);

/** The texts of an axis of Unix seconds: `15 Nov` or `2026` for days and midnight, otherwise `16:41` or `16:41:52`. */
export function axisTimes(splits: readonly number[], isByDay: boolean): string[] {
  const step = (splits[1] ?? Infinity) - (splits[0] ?? 0);
  return splits.map((split) => {
    const [date = "", time = ""] = (isByDay ? utcDay : localTime)(split * 1_000).split(", ");
    if (isByDay || time === "00:00:00") return date.replace(/^1 Jan | \d+$/, "");
    return step < 60 ? time : time.slice(0, "16:41".length);
  });
}

/** `2026-11-15 16:41:52 UTC`. */
export const utcTime = (at: number): string => formatTime(at).replace(/T(.*)\.\d+Z$/, " $1 UTC");

const PLURALS = new Intl.PluralRules("en", { type: "ordinal" });
const ENDINGS: Readonly<Record<string, string>> = { one: "st", two: "nd", few: "rd" };

/** `2nd`, `11th`. */
export const ordinal = (count: number): string => `${count}${ENDINGS[PLURALS.select(count)] ?? "th"}`;

export const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** The value of `<input type="datetime-local">`: `2026-11-15T16:41`, in the time zone of the browser. */
export function localInput(at: number, { hasSeconds = false } = {}): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * MINUTE_MS).toISOString();
  return local.slice(0, hasSeconds ? 19 : 16);
}

/** The value of such an input for a time that may be missing or, in a URL, invalid. */
export function localInputOf(time: string | null, options?: { readonly hasSeconds: boolean }): string {
  const at = Date.parse(time ?? "");
  return Number.isNaN(at) ? "" : localInput(at, options);
}

/** The time of such an input; null if it is empty. */
export const timeOfInput = (value: string): string | null =>
  value === "" ? null : new Date(value).toISOString();
