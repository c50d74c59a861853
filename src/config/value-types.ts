import { alternatives, grouped } from "../text/formatting.ts";
import { isOnCalendar } from "../api/schema.ts";
import { typedDuration, parseTypedDuration } from "../text/durations.ts";
import { DAY_MS } from "../text/time-units.ts";
import { actionNamed } from "../domain/audit.ts";
import { WEBHOOK_EVENTS } from "../domain/webhooks.ts";
import { didYouMean, nearest } from "../text/nearest.ts";

/** The type of an option's value. */
export interface ValueType<T> {
  /** The value in a usage line, such as N in `--port N`. A type without one is a switch: the flag alone means true. */
  readonly placeholder?: string;
  /** Completes "it must be …". */
  readonly expected: string;
  /** Bounds or choices, short enough for a line of --help. */
  readonly range?: string;
  /** All valid values, if they are few. */
  readonly choices?: readonly string[];
  /** Whether a positional may be missing, in which case its value is undefined. */
  readonly optional?: true;
  /** Whether a value may contain a password, so that messages do not repeat it. */
  readonly secret?: true;
  /** Whether a value is a URL, of which messages repeat no user, query or fragment. */
  readonly isUrl?: true;
  /** Parses a text. Returns undefined if the text is invalid. */
  parse(text: string): T | undefined;
  /** Formats a value as a user types it; the default is String. */
  format?(value: T): string;
  /** The likely cause of an invalid value, or what the user may have meant. The hint of a secret repeats none of it. */
  hint?(text: string): string | undefined;
}

export function formatValue<T>(type: ValueType<T>, value: T): string {
  return type.format?.(value) ?? String(value);
}

/** Makes a type for a positional that may be missing. */
export function optional<T>(type: ValueType<T>): ValueType<T | undefined> {
  return { ...type, optional: true };
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

export function choice<const T extends string>(placeholder: string, values: readonly T[]): ValueType<T> {
  return {
    hint: (text) => didYouMean(nearest(text, values)),
    placeholder,
    expected: alternatives(values),
    range: alternatives(values),
    choices: values,
    parse: (text) => values.find((value) => value === text),
  };
}

const DIGITS = /^(?:0|[1-9]\d{0,15})$/;

export function integerWithin({ min, max }: Bounds): ValueType<number> {
  // Ports are written without commas.
  const range = `${min} to ${max < 100_000 ? max : grouped(max)}`;
  return {
    placeholder: "N",
    expected: `an integer from ${range}`,
    range,
    parse: (text) => within(DIGITS.test(text) ? Number(text) : undefined, { min, max }),
  };
}

function within(value: number | undefined, { min, max }: Bounds): number | undefined {
  return value !== undefined && value >= min && value <= max ? value : undefined;
}

/** A share of a whole. */
export const ratio: ValueType<number> = {
  placeholder: "RATIO",
  expected: "a number from 0 to 1, such as 0.01",
  range: "0 to 1",
  parse: (text) => (/^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/.test(text) ? Number(text) : undefined),
};

const ADMIN_TOKEN = /^[!-~]{16,200}$/;

/** The token with which an operator signs in. */
export const adminToken: ValueType<string> = {
  placeholder: "TOKEN",
  secret: true,
  expected: "16 to 200 visible ASCII characters",
  parse: (text) => (ADMIN_TOKEN.test(text) ? text : undefined),
};

const WEBHOOK_SECRET = /^whsec_([A-Za-z\d+/]+={0,2})$/;
const WEBHOOK_SECRET_BYTES = { min: 24, max: 64 };

/** A secret in the format of Standard Webhooks. It is parsed to its bytes. */
const webhookSecret: ValueType<Uint8Array> = {
  placeholder: "SECRET",
  secret: true,
  expected:
    "one or two secrets, each whsec_ and 24 to 64 bytes in base64; make one with: printf 'whsec_%s\\n' \"$(openssl rand -base64 32)\"",
  parse(text) {
    const [, base64 = ""] = WEBHOOK_SECRET.exec(text) ?? [];
    const bytes = Buffer.from(base64, "base64");
    return within(bytes.length, WEBHOOK_SECRET_BYTES) === undefined ? undefined : bytes;
  },
  format: () => "whsec_…",
};

const MAX_WEBHOOK_SECRETS = 2;

/** Two secrets while a receiver changes from one to the other: each signs every event. */
export const webhookSecrets: ValueType<readonly Uint8Array[]> = {
  ...list(webhookSecret),
  expected: webhookSecret.expected,
  parse(text) {
    const secrets = list(webhookSecret).parse(text);
    return secrets && secrets.length <= MAX_WEBHOOK_SECRETS ? secrets : undefined;
  },
  format: () => "whsec_…",
};

/** An action of the audit trail, or several of them. */
export const webhookEvent: ValueType<string> = {
  placeholder: "EVENT",
  expected: "an action of the audit trail such as key.banned, all of a kind such as operator.*, or *",
  choices: WEBHOOK_EVENTS,
  parse: (text) => (WEBHOOK_EVENTS.includes(text) ? text : undefined),
  hint: (text) =>
    WEBHOOK_EVENTS.includes(text)
      ? undefined
      : didYouMean(actionNamed(text) ?? nearest(text, WEBHOOK_EVENTS)),
};

export const directory = path("DIR", "the path of a directory");
export const file = path("FILE", "the path of a file");

/** The character by which the runtime replaces bytes that are not UTF-8. A path with it would name another file. */
const REPLACEMENT = "\ufffd";
const NO_PATH = ["\0", "://", REPLACEMENT];

/** A path. A URL is rejected, because it is meant for another option and may contain a password. */
function path(placeholder: string, expected: string): ValueType<string> {
  return {
    placeholder,
    expected,
    parse: (text) => (text === "" || NO_PATH.some((part) => text.includes(part)) ? undefined : text),
    hint: (text) => (text.includes(REPLACEMENT) ? "its name is not UTF-8; rename it" : undefined),
  };
}

const EXAMPLES = ["25ms", "500ms", "90s", "15m", "24h", "30d", "365d"];
/** The units for a hint about a number without one, most likely first. */
const LIKELY_UNITS = ["s", "ms", "m", "h", "d"];

/** A duration in milliseconds, which is written with a unit. 0 needs none. */
export function duration(bounds: Bounds): ValueType<number> {
  const range = `${typedDuration(bounds.min)} to ${typedDuration(bounds.max)}`;
  const isWithin = (text: string) => within(parseTypedDuration(text), bounds) !== undefined;
  return {
    placeholder: "TIME",
    range,
    expected: `a duration from ${range}, such as ${alternatives(EXAMPLES.filter(isWithin))}`,
    parse: (text) => within(parseTypedDuration(text), bounds),
    format: typedDuration,
    hint: (text) =>
      DIGITS.test(text) ? didYouMean(LIKELY_UNITS.map((unit) => text + unit).find(isWithin)) : undefined,
  };
}

const MEGABYTE = 2 ** 20;

/** A size in bytes, which is written in megabytes. 0 needs no unit. */
export function size({ min, max }: Bounds): ValueType<number> {
  const range = `${min / MEGABYTE}MB to ${max / MEGABYTE}MB, or 0`;
  const bytesOf = (digits = "") =>
    within(DIGITS.test(digits) ? Number(digits) * MEGABYTE : undefined, { min, max });
  return {
    placeholder: "SIZE",
    range,
    expected: `a size from ${range}`,
    parse: (text) => (text === "0" ? 0 : bytesOf(/^(.*)MB$/.exec(text)?.[1])),
    format: (bytes) => (bytes === 0 ? "0" : `${bytes / MEGABYTE}MB`),
    hint: (text) => (bytesOf(text) === undefined ? undefined : didYouMean(`${text}MB`)),
  };
}

const SWITCH_VALUES = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

export const trueOrFalse: ValueType<boolean> = {
  expected: "true or false",
  parse: (text) => SWITCH_VALUES.get(text),
};

/** An option that is off unless its flag is given. */
export function switchOption(help: string) {
  return { type: trueOrFalse, default: false, help };
}

const splitList = (text: string) => text.split(",").map((item) => item.trim());

/** A list of values. The flag is repeated, or the values are separated by commas. */
export function list<T>(type: ValueType<T>): ValueType<readonly T[]> {
  const { choices: _choices, ...rest } = type;
  return {
    ...rest,
    placeholder: `${type.placeholder}…`,
    expected: `${type.expected}, or several separated by commas`,
    parse: (text) => {
      const values = splitList(text).flatMap((item) => type.parse(item) ?? []);
      return values.length === splitList(text).length ? values : undefined;
    },
    format: (values) => values.map((value) => formatValue(type, value)).join(", "),
    hint: (text) => splitList(text).flatMap((item) => type.hint?.(item) ?? [])[0],
  };
}

/** An instant, or a duration before now, in milliseconds. A negative duration is after now. */
export type PointInTime = { readonly at: number } | { readonly agoMs: number };

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_AND_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/;
const ago = duration({ min: 0, max: 3_650 * DAY_MS });

/** A point in time. A date means its start in UTC. */
export const pointInTime: ValueType<PointInTime> = {
  placeholder: "WHEN",
  expected:
    "a date such as 2026-11-01, a time such as 2026-11-01T12:00:00Z, or a duration before now such as 30d",
  range: "2026-11-01, or 30d for 30 days ago",
  parse(text) {
    const agoMs = ago.parse(text);
    if (agoMs !== undefined) return { agoMs };
    if (!DATE.test(text) && !DATE_AND_TIME.test(text)) return undefined;
    return isOnCalendar(text) ? { at: Date.parse(text) } : undefined;
  },
  format: (value) => ("at" in value ? new Date(value.at).toISOString() : typedDuration(value.agoMs)),
  hint: (text) => ago.hint?.(text),
};

const untilThen = duration({ min: 1_000, max: 3_650 * DAY_MS });

/** When something expires: a duration from now, or a point in time. */
export const expiry: ValueType<PointInTime> = {
  placeholder: "WHEN",
  expected:
    "a duration from 1s to 3650d such as 90d, a date such as 2027-03-31, or a time such as 2027-03-31T12:00:00Z",
  range: "90d, or 2027-03-31",
  parse(text) {
    const ms = untilThen.parse(text);
    if (ms !== undefined) return { agoMs: -ms };
    const point = pointInTime.parse(text);
    return point && "at" in point ? point : undefined;
  },
  hint: (text) => untilThen.hint?.(text),
};

export function timeOf(value: PointInTime, now: number): number {
  return "at" in value ? value.at : now - value.agoMs;
}

/** A duration, or null for forever. */
export function durationOrForever(bounds: Bounds): ValueType<number | null> {
  const length = duration(bounds);
  return {
    ...length,
    range: `${length.range}, or forever`,
    expected: `forever, or ${length.expected}`,
    // Undefined would mean an invalid text.
    parse: (text) => (text === "forever" ? null : length.parse(text)),
    format: (value) => (value === null ? "forever" : typedDuration(value)),
  };
}
