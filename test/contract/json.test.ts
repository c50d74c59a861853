import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  INT64_MAX,
  INT64_MIN,
  isInt64,
  parseIdentifier,
  parseNumber,
  toJson,
  toSafeNumber,
} from "../../src/api/json.ts";
import { int64, Invalid } from "../../src/api/schema.ts";
import { isEverFasterThan } from "../timing.ts";

const anyInt64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX });
const digits = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789"), minLength, maxLength });
const whole = fc.oneof(
  fc.constant("0"),
  fc.tuple(fc.constantFrom(..."123456789"), digits(0, 24)).map((parts) => parts.join("")),
);

/** Any number that JSON can write, with the parts it is made of. */
const literal = fc
  .record({
    sign: fc.constantFrom("", "-"),
    whole,
    fraction: fc.oneof(
      fc.constant(""),
      digits(1, 24),
      fc.nat(24).map((length) => "0".repeat(length + 1)),
      fc.nat(24).map((length) => `${"0".repeat(length)}1`),
      fc.nat(24).map((length) => "9".repeat(length + 1)),
    ),
    exponent: fc.option(fc.integer({ min: -45, max: 45 }), { nil: undefined }),
    mark: fc.constantFrom("e", "E", "e+"),
  })
  .map(({ sign, whole, fraction, exponent = 0, mark }) => {
    const end = exponent === 0 ? "" : `${exponent < 0 ? mark.slice(0, 1) : mark}${exponent}`;
    return { text: `${sign}${whole}${fraction && `.${fraction}`}${end}`, sign, whole, fraction, exponent };
  });

type Literal = typeof literal extends fc.Arbitrary<infer T> ? T : never;

/** The slow and obvious way: the value as a fraction of two bigints; an integer when one divides the other. */
function oracle({ sign, whole, fraction, exponent }: Literal): bigint | undefined {
  const numerator = BigInt(`${whole}${fraction}`) * 10n ** BigInt(Math.max(0, exponent)) * (sign ? -1n : 1n);
  const denominator = 10n ** BigInt(fraction.length + Math.max(0, -exponent));
  return numerator % denominator === 0n ? numerator / denominator : undefined;
}

const readInt64 = (literal: string) => int64().read(parseNumber(literal));

describe("parseNumber", () => {
  test("any int64 keeps its digits", () => {
    fc.assert(fc.property(anyInt64, (n) => expect(readInt64(String(n))).toBe(n)));
  });

  test.each([
    ["9223372036854775807", INT64_MAX],
    ["-9223372036854775808", INT64_MIN],
    ["9.223372036854775807e18", INT64_MAX],
    ["0e99999999999999999999", 0n],
  ])("%s is an integer", (text, expected) => expect(readInt64(text)).toBe(expected));

  test.each("9223372036854775808 -9223372036854775809 1e400 -1e400 1e9999999999999 1e-400".split(" "))(
    "%s is no int64",
    (text) => expect(readInt64(text)).toBeInstanceOf(Invalid),
  );

  test("agrees with an oracle of bigints on every number that JSON can write", () => {
    fc.assert(
      fc.property(literal, (number) => {
        const expected = oracle(number);
        const found = readInt64(number.text);
        if (expected !== undefined && isInt64(expected)) expect(found).toBe(expected);
        else expect(found).toBeInstanceOf(Invalid);
      }),
      { numRuns: 2_000 },
    );
  });

  test("a number of 16,000 digits takes less than 20 ms", () => {
    const zeros = "0".repeat(16_000);
    for (const text of [`1.${zeros}1`, `0.${zeros}1e16000`, `1${zeros}`, `-1${zeros}1`, `1${zeros}e-16001`]) {
      expect(isEverFasterThan(20, () => readInt64(text))).toBe(true);
      expect(readInt64(text)).toBeInstanceOf(Invalid);
    }
    expect(readInt64(`1.${zeros}`)).toBe(1n);
    expect(readInt64(`1${zeros}e-16000`)).toBe(1n);
  });
});

describe("toJson", () => {
  test("writes bigints as integers that parseNumber reads back", () => {
    fc.assert(
      fc.property(anyInt64, (n) => {
        expect(toJson({ n })).toBe(`{"n":${n}}`);
        expect(readInt64(toJson(n))).toBe(n);
      }),
    );
  });

  test("indents when asked to", () => expect(toJson({ a: [1n] }, 2)).toBe('{\n  "a": [\n    1\n  ]\n}'));
});

describe("parseIdentifier", () => {
  const hasAtMost15Characters = (n: bigint) => String(n).length <= 15;

  test("accepts any int64 in decimal", () => {
    fc.assert(
      fc.property(anyInt64, (n) =>
        expect(parseIdentifier(String(n))).toEqual(hasAtMost15Characters(n) ? Number(n) : n),
      ),
    );
  });

  test("an identifier has one spelling", () => {
    const near = fc.string({ unit: fc.constantFrom(..."0123456789-+.e "), maxLength: 21 });
    fc.assert(
      fc.property(fc.oneof(fc.string(), near), (text) => {
        const id = parseIdentifier(text);
        if (id !== undefined) expect(String(id)).toBe(text);
      }),
    );
  });

  test.each(["", "-0", " 1", "1\n", "0x1", "١", "1_0", "9223372036854775808", "-9223372036854775809"])(
    "%p is rejected",
    (text) => expect(parseIdentifier(text)).toBeUndefined(),
  );

  test("an identifier that a double does not represent is that of no key", () => {
    const ids = [7, 9_007_199_254_740_991n, 9_007_199_254_740_992n, INT64_MIN];
    expect(ids.map(toSafeNumber)).toEqual([7, 9_007_199_254_740_991, 0, 0]);
  });
});
