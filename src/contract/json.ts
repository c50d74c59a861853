/**
 * JSON in and out with exact int64.
 *
 * A plain `JSON.parse` turns 9007199254740993 into 9007199254740992. The reviver's `context.source` gives the digits
 * as they were sent, at about eight times the cost, so it runs only when a body holds a number that a double might
 * not carry: sixteen or more digits (a decimal point among them does not end the run), or an exponent.
 */
const NEEDS_EXACT_PARSE = /\d[\d.]{15}|\d[eE]/;

export const INT64_MIN = -(2n ** 63n);
export const INT64_MAX = 2n ** 63n - 1n;

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;
/** `context` is ES2026 and newer than the type library. */
const parseWithSource: (text: string, reviver: Reviver) => unknown = JSON.parse;

/** Throws SyntaxError on anything that is not JSON. Integers that a double cannot carry arrive as bigint. */
export function parseJson(text: string): unknown {
  if (!NEEDS_EXACT_PARSE.test(text)) return JSON.parse(text);
  try {
    return parseWithSource(text, (_key, value, context) =>
      typeof value === "number" && context?.source !== undefined ? exactNumber(value, context.source) : value,
    );
  } catch (error) {
    // A reviver walks by recursion, so some thousand levels of nesting overflow the stack; the plain parse does not.
    if (error instanceof RangeError) throw new SyntaxError("nested too deeply", { cause: error });
    throw error;
  }
}

/** `1.0` and `1e3` are integers. A literal that only rounds to one is not: it becomes NaN, which no check takes. */
function exactNumber(value: number, source: string): number | bigint {
  const integer = integerOf(source);
  if (integer === undefined) return Number.isInteger(value) ? Number.NaN : value;
  return integer >= Number.MIN_SAFE_INTEGER && integer <= Number.MAX_SAFE_INTEGER ? Number(integer) : integer;
}

const LITERAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** More digits than any int64 has; keeps `1e999999999` from being expanded. */
const MAX_DIGITS = 40;

/** Takes time proportional to the literal: a body may be one number of 64 KiB, and no regex may backtrack over it. */
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

/** `rawJSON` is as new as `context`. Looked up on use, because a browser may lack it and never need it. */
const modernJson = JSON as JSON & { rawJSON(text: string): unknown };

/** JSON text in which bigints are integers, exact. For documents; what is written often has an encoder of its own. */
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

/** An int64 that was read: a bigint where a double might not carry it, since bigints are slow to work with. */
export type Identifier = number | bigint;

/** An identifier as it stands in a path: plain decimal, no sign but a minus, no leading zero, within int64. */
export function parseIdentifier(text: string): Identifier | undefined {
  if (isSmall(text)) return Number(text);
  if (!PLAIN_DECIMAL.test(text)) return undefined;
  const value = BigInt(text);
  return isInt64(value) ? value : undefined;
}

const ZERO = 48;
const NINE = 57;
/** So many digits fit into a double, whatever they are. */
const SMALL_DIGITS = 15;

/** What nearly every identifier is: a few digits, none of them a zero in front. Seeing that takes next to no time. */
function isSmall(text: string): boolean {
  if (text.length === 0 || text.length > SMALL_DIGITS || text.charCodeAt(0) === ZERO) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < ZERO || code > NINE) return false;
  }
  return true;
}
