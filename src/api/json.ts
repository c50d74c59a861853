export const INT64_MIN = -(2n ** 63n);
export const INT64_MAX = 2n ** 63n - 1n;
/** As messages write it: "an integer from -2^63 to 2^63 - 1". */
export const INT64_RANGE = "from -2^63 to 2^63 - 1";

/** So many digits fit into a double, whatever they are. */
const MAX_NUMBER_DIGITS = 15;
const SMALL_INTEGER = new RegExp(`^-?\\d{1,${MAX_NUMBER_DIGITS}}$`);

/**
 * The exact value of a number in JSON: `JSON.parse` turns 9007199254740993 into 9007199254740992. Integers that a
 * double may not represent are bigints, and `1.0` and `1e3` are integers. A literal that only rounds to an integer is
 * NaN, which no schema accepts.
 */
export function parseNumber(literal: string): number | bigint {
  const value = Number(literal);
  if (SMALL_INTEGER.test(literal)) return value;
  const integer = integerOf(literal);
  if (integer === undefined) return Number.isInteger(value) ? Number.NaN : value;
  return integer >= Number.MIN_SAFE_INTEGER && integer <= Number.MAX_SAFE_INTEGER ? Number(integer) : integer;
}

const LITERAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** More digits than any int64 has, so that `1e999999999` is not expanded. */
const MAX_DIGITS = 40;

/** Linear in the length of the literal: a body may be one single number, and no regex may backtrack over it. */
function integerOf(literal: string): bigint | undefined {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = LITERAL.exec(literal) ?? [];
  const digits = whole + fraction;
  const start = digits.search(/[1-9]/);
  if (start === -1) return 0n;
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  const scale = Number(exponent) + whole.length - end;
  if (scale < 0) return undefined;
  if (end - start + scale > MAX_DIGITS) return sign === "-" ? INT64_MIN - 1n : INT64_MAX + 1n;
  return BigInt(sign + digits.slice(start, end)) * 10n ** BigInt(scale);
}

/** `rawJSON` is ES2026 and newer than the type library. */
const modernJson = JSON as JSON & { rawJSON(text: string): unknown };

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;
/** `context` is ES2026 too. */
const parseWithSource: (text: string, reviver: Reviver) => unknown = JSON.parse;

/** Any JSON value with exact integers; undefined if the text is not JSON. For bodies of clients that are trusted. */
export function parseJson(text: string): unknown {
  try {
    return parseWithSource(text, (_key, value, context) =>
      typeof value === "number" && context?.source !== undefined ? parseNumber(context.source) : value,
    );
  } catch {
    return undefined;
  }
}

/** JSON in which bigints are integers. For documents; resources that are sent often have their own encoders. */
export function toJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, rawBigint, indent);
}

function rawBigint(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? modernJson.rawJSON(value.toString()) : value;
}

export function isInt64(value: bigint): boolean {
  return value >= INT64_MIN && value <= INT64_MAX;
}

const PLAIN_DECIMAL = /^(?:0|-?[1-9]\d{0,18})$/;

/** An int64. A bigint instead of a number makes `GET /pets/{petId}` 0.4 µs slower, so small ones are numbers. */
export type Identifier = number | bigint;

/** Keys and operators have identifiers that a double represents, from 1 on: 0 stands for what none of them has. */
export function toSafeNumber(id: Identifier): number {
  return Number.isSafeInteger(Number(id)) ? Number(id) : 0;
}

/** An identifier in a path: decimal, within int64, without a plus sign or leading zeros. */
export function parseIdentifier(text: string): Identifier | undefined {
  if (!PLAIN_DECIMAL.test(text)) return undefined;
  if (text.length <= MAX_NUMBER_DIGITS) return Number(text);
  const value = BigInt(text);
  return isInt64(value) ? value : undefined;
}

/** The value of a field that is an object or an array. No schema accepts it. */
export const NESTED = Symbol("an object or array");

/**
 * An object or array within another value, or a number that a double may not represent: 16 or more digits (a decimal
 * point does not interrupt them), or an exponent. For a short text without them `JSON.parse` is exact and cheap: a new
 * pet takes 0.19 µs instead of 0.75.
 */
const NEEDS_SCAN = /[^][[{]|\d[\d.]{15}|\d[eE]/;
const SHORT = 1_024;

/**
 * Parses an object with the fields of the given `names`; other fields may be missing. Null or a scalar if the text is
 * another JSON value, undefined if it is not JSON: it accepts exactly what `JSON.parse` accepts.
 *
 * `JSON.parse` builds the values of unknown fields, too, and the runtime reserves an array of 1,000 for an object such
 * as `{"999":0}`: nested in a body of 16 KiB they take 11 ms and 14 MiB. `scanFields` only validates what it does not
 * return, in linear time and without recursion.
 */
export function parseFields(text: string, names: readonly string[]): unknown {
  if (text.length > SHORT || NEEDS_SCAN.test(text)) return scanFields(text, names);
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function scanFields(text: string, names: readonly string[]): Record<string, unknown> | null | undefined {
  const start = skipSpace(text, 0);
  if (text.charCodeAt(start) !== BRACE) return isLast(text, valueEnd(text, start)) ? null : undefined;
  const literals: Record<string, string> = {};
  let at = skipSpace(text, start + 1);
  if (text.charCodeAt(at) !== BRACE + TO_CLOSING) {
    for (;;) {
      const nameEnd = stringEnd(text, at);
      const valueStart = skipColon(text, nameEnd);
      const end = valueEnd(text, valueStart);
      if (end === INVALID) return undefined;
      const name = nameOf(text.slice(at, nameEnd));
      if (names.includes(name)) literals[name] = text.slice(valueStart, end);
      at = skipSpace(text, end);
      if (text.charCodeAt(at) !== COMMA) break;
      at = skipSpace(text, at + 1);
    }
  }
  if (text.charCodeAt(at) !== BRACE + TO_CLOSING || !isLast(text, at + 1)) return undefined;
  const fields: Record<string, unknown> = {};
  for (const [name, literal] of Object.entries(literals)) fields[name] = parseValue(literal);
  return fields;
}

function nameOf(literal: string): string {
  return literal.includes("\\") ? JSON.parse(literal) : literal.slice(1, -1);
}

function parseValue(literal: string): unknown {
  const first = literal.charCodeAt(0);
  if (first === BRACE || first === BRACKET) return NESTED;
  return /^[-\d]/.test(literal) ? parseNumber(literal) : JSON.parse(literal);
}

const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BRACE = 0x7b;
/** From `[` to `]` and from `{` to `}`. */
const TO_CLOSING = 2;

/** A position beyond every text. No character is there, so every function below that gets it returns it. */
const INVALID = 2 ** 30;

function isLast(text: string, at: number): boolean {
  return skipSpace(text, at) === text.length;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at++;
  }
}

function skipColon(text: string, start: number): number {
  const at = skipSpace(text, start);
  return text.charCodeAt(at) === COLON ? skipSpace(text, at + 1) : INVALID;
}

function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  return first === BRACE || first === BRACKET ? nestedEnd(text, start) : matchEnd(SCALAR, text, start);
}

/** The end of an object or array. `open` has the opening character of each one that is not closed yet. */
function nestedEnd(text: string, start: number): number {
  const open: number[] = [];
  let at = start;
  for (;;) {
    const first = text.charCodeAt(at);
    if (first === BRACE || first === BRACKET) {
      open.push(first);
      at = skipSpace(text, at + 1);
      if (text.charCodeAt(at) !== first + TO_CLOSING) {
        if (first === BRACE) at = skipColon(text, stringEnd(text, at));
        continue;
      }
    } else {
      at = skipSpace(text, matchEnd(SCALAR, text, at));
    }
    let innermost = open[open.length - 1] ?? 0;
    while (text.charCodeAt(at) === innermost + TO_CLOSING) {
      open.pop();
      if (open.length === 0) return at + 1;
      at = skipSpace(text, at + 1);
      innermost = open[open.length - 1] ?? 0;
    }
    if (text.charCodeAt(at) !== COMMA) return INVALID;
    at = skipSpace(text, at + 1);
    if (innermost === BRACE) at = skipColon(text, stringEnd(text, at));
  }
}

const STRING = String.raw`"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"`;
const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`;
const NAME = new RegExp(STRING, "y");
const SCALAR = new RegExp(`${STRING}|${NUMBER}|true|false|null`, "y");

function stringEnd(text: string, start: number): number {
  return matchEnd(NAME, text, start);
}

function matchEnd(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : INVALID;
}
