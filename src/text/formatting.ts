/*
 * Numbers, dates and text as messages and documentation write them. The first use of `Intl` would take 15 ms of every
 * start. src/text/durations.ts has durations.
 */

/** Writes `1 second`, `12 seconds`. */
export function plural(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** Writes an integer as `1,000`. */
export function grouped(number: number): string {
  return String(number).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** Writes `612`, `2.1`, `0.04`: three digits that matter. */
export function figure(value: number): string {
  if (value === 0 || value >= 100) return grouped(Math.round(value));
  return String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}

/** Writes `1 key`, `10,000 keys`. */
export function countOf(number: number, noun: string): string {
  return `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Joins items, such as `a, b or c`. */
export function alternatives(items: readonly string[]): string {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} or ${items.at(-1)}`;
}

export function kibibytes(bytes: number): string {
  return `${bytes / 1024} KiB`;
}

const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

/** Writes `5 December 2030`, in UTC. */
export function longDate(date: Date): string {
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

const FIRST_TIME = Date.parse("0000-01-01T00:00:00Z");
const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z");

/** Writes milliseconds since the epoch as RFC 3339, whose years are 0000 to 9999; other times become the nearest. */
export function formatTime(ms: number): string {
  return new Date(Math.min(Math.max(ms, FIRST_TIME), LAST_TIME)).toISOString();
}

/** Returns null without a time, for JSON. */
export function formatOptionalTime(ms: number | null | undefined): string | null {
  return ms === undefined || ms === null ? null : formatTime(ms);
}

/** Returns the milliseconds since the epoch of a time in RFC 3339. */
export function parseOptionalTime(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/**
 * Characters that a terminal would interpret, or that are invisible: control characters, text direction marks,
 * zero-width characters, lone surrogates, line separators. A joiner of emoji, which are shown as one, is printable.
 */
const UNPRINTABLE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}](?<!\p{ExtPict}[\p{EMod}\u{fe0f}]{0,2}\u{200d}(?=\p{ExtPict}))/gu;

/** Escapes the unprintable characters of a text for terminals and pages. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Escapes the unprintable characters of each line. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** Escapes the unprintable characters in the strings of JSON, whose values stay the same. Line breaks stay. */
export function printableJson(json: string): string {
  return json.replace(UNPRINTABLE, (character) =>
    character === "\n" ? character : character.split("").map(escapedUnit).join(""),
  );
}

function escapedUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
