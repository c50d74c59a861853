import { joined } from "./problem.ts";

/** What a setting can be. `write` gives back what `read` took, so defaults are shown as one would type them. */
export interface Kind<T> {
  /** Stands for the value in a usage line: `--port N`. Absent: a switch, which is on when it is named. */
  readonly placeholder?: string;
  /** Completes "it should be …". */
  readonly expected: string;
  /** The same in a word or two, where bounds or choices are worth showing beside every mention. */
  readonly range?: string;
  /** May hold a password, so a value that is wrong is not repeated. */
  readonly secret?: true;
  read(text: string): T | undefined;
  write(value: T): string;
  /** What the operator may have meant by a value that cannot be read. */
  hint?(text: string): string | undefined;
  /** How a value that cannot be read may have come about, where that is not obvious. Repeats nothing of it. */
  remark?(text: string): string | undefined;
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

export function choice<const T extends string>(placeholder: string, values: readonly T[]): Kind<T> {
  return {
    placeholder,
    expected: joined(values),
    range: joined(values),
    read: (text) => values.find((value) => value === text),
    write: (value) => value,
  };
}

const DIGITS = /^(?:0|[1-9]\d{0,15})$/;

export function integer({ min, max }: Bounds): Kind<number> {
  // Commas help with a million and look odd in a port.
  const range = `${min} to ${max < 100_000 ? max : grouped(max)}`;
  return {
    placeholder: "N",
    expected: `a whole number from ${range}`,
    range,
    read: (text) => within(DIGITS.test(text) ? Number(text) : undefined, { min, max }),
    write: String,
  };
}

/** 1234567 → 1,234,567. */
export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

function within(value: number | undefined, { min, max }: Bounds): number | undefined {
  return value !== undefined && value >= min && value <= max ? value : undefined;
}

const LINE_BREAKING = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

export function text(placeholder: string, max: number): Kind<string> {
  return {
    placeholder,
    expected: `1 to ${grouped(max)} characters on one line, not all of them blank`,
    read: (text) =>
      text.trim() !== "" && [...text].length <= max && !LINE_BREAKING.test(text) ? text : undefined,
    write: (value) => value,
  };
}

export const folder: Kind<string> = {
  placeholder: "DIR",
  expected: "the path of a folder",
  read: (text) => (text === "" || text.includes("\0") ? undefined : text),
  write: (value) => value,
};

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;
const DURATION = /^(?<count>0|[1-9]\d{0,11})(?<unit>ms|s|m|h|d)$/;

const EXAMPLES = ["25ms", "500ms", "90s", "15m", "24h", "30d"];
/** What a bare number most likely means comes first. */
const GUESSES = ["s", "ms", "m", "h", "d"];

/** Milliseconds, written with a unit. Zero needs none. */
export function duration(bounds: Bounds): Kind<number> {
  const range = `${writeDuration(bounds.min)} to ${writeDuration(bounds.max)}`;
  const isWithin = (text: string) => within(readDuration(text), bounds) !== undefined;
  return {
    placeholder: "TIME",
    range,
    expected: `a time from ${range}, such as ${joined(EXAMPLES.filter(isWithin))}`,
    read: (text) => within(readDuration(text), bounds),
    write: writeDuration,
    hint: (text) => {
      const meant = GUESSES.map((unit) => text + unit).find(isWithin);
      return DIGITS.test(text) && meant !== undefined ? `${meant}, with a unit` : undefined;
    },
  };
}

function readDuration(text: string): number | undefined {
  if (text === "0") return 0;
  const { count, unit } = DURATION.exec(text)?.groups ?? {};
  return count === undefined || !isUnit(unit) ? undefined : Number(count) * UNITS[unit];
}

function isUnit(unit: string | undefined): unit is keyof typeof UNITS {
  return unit !== undefined && unit in UNITS;
}

/** In the largest unit that divides it. */
export function writeDuration(ms: number): string {
  if (ms === 0) return "0";
  const [unit, length] = Object.entries(UNITS).find(([, length]) => ms % length === 0) ?? ["ms", 1];
  return `${ms / length}${unit}`;
}

export const toggle: Kind<boolean> = {
  expected: "true or false",
  read: (text) => ({ true: true, "1": true, false: false, "0": false })[text],
  write: String,
};

const items = (text: string) => text.split(",").map((item) => item.trim());

/** Several values: the flag repeated, or separated by commas. */
export function list<T>(kind: Kind<T>): Kind<readonly T[]> {
  return {
    placeholder: `${kind.placeholder}…`,
    ...(kind.secret && { secret: kind.secret }),
    expected: `${kind.expected}, or several with commas between them`,
    read: (text) => {
      const values = items(text).flatMap((item) => kind.read(item) ?? []);
      return values.length === items(text).length ? values : undefined;
    },
    write: (values) => values.map(kind.write).join(","),
    hint: (text) => items(text).flatMap((item) => kind.hint?.(item) ?? [])[0],
    remark: (text) => items(text).flatMap((item) => kind.remark?.(item) ?? [])[0],
  };
}
