import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  INT64_MAX,
  INT64_MIN,
  isInt64,
  parseIdentifier,
  parseJson,
  toJson,
} from "../../src/contract/json.ts";
import { int64, Invalid } from "../../src/contract/schema.ts";

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

const readField = (text: string) => {
  const { n } = parseJson(`{"n":${text}}`) as { n: unknown };
  return int64().read(n);
};

describe("parseJson", () => {
  test("any int64 comes out of a body as itself", () => {
    fc.assert(fc.property(anyInt64, (n) => expect(readField(String(n))).toBe(n)));
  });

  test.each([
    ["9007199254740993", 9007199254740993n],
    ["-9007199254740993", -9007199254740993n],
    ["9223372036854775807", INT64_MAX],
    ["-9223372036854775808", INT64_MIN],
    ["9.223372036854775807e18", INT64_MAX],
    ["92233720368547758070e-1", INT64_MAX],
    ["1.0", 1n],
    ["1e3", 1000n],
    ["1.5e1", 15n],
    ["-0", 0n],
    ["-0.0e5", 0n],
    ["0e99999999999999999999", 0n],
  ])("%s is an integer", (text, expected) => expect(readField(text)).toBe(expected));

  const tooGreat = [
    "9223372036854775808",
    "-9223372036854775809",
    "1e19",
    "1e400",
    "-1e400",
    "1e9999999999999",
  ];
  const fractions = [
    "1.5",
    "1e-1",
    "1e-400",
    "9007199254740992.5",
    "1.000000000000000001",
    "0.99999999999999999",
  ];
  test.each([...tooGreat, ...fractions, '"1"', "true", "null", "[]", "{}"])("%s is no int64", (text) =>
    expect(readField(text)).toBeInstanceOf(Invalid),
  );

  test("agrees with an oracle of bigints on every number that JSON can write", () => {
    fc.assert(
      fc.property(literal, (number) => {
        const expected = oracle(number);
        const found = readField(number.text);
        if (expected !== undefined && isInt64(expected)) expect(found).toBe(expected);
        else expect(found).toBeInstanceOf(Invalid);
      }),
      { numRuns: 2_000 },
    );
  });

  const anyJson = fc.jsonValue().map((value) => JSON.stringify(value));

  test("is JSON.parse for everything that holds no number a double would round", () => {
    const plain = anyJson.filter((text) => !/\d[\d.]{15}|\d[eE]/.test(text));
    fc.assert(fc.property(plain, (text) => expect(parseJson(text)).toEqual(JSON.parse(text))));
  });

  test("one exact number does not disturb its neighbours", () => {
    const plain = anyJson.filter((text) => !/\d[\d.eE]/.test(text));
    fc.assert(
      fc.property(plain, anyInt64, (text, n) => {
        const [before, exact, after] = parseJson(`[${text},${n},${text}]`) as unknown[];
        expect([before, after]).toEqual([JSON.parse(text), JSON.parse(text)]);
        expect(int64().read(exact)).toBe(n);
      }),
    );
  });

  test("the last of two fields with one name counts, with its own digits", () => {
    expect(parseJson('{"n":9007199254740993,"n":5}')).toEqual({ n: 5 });
    expect(parseJson('{"n":5,"n":9007199254740993}')).toEqual({ n: 9007199254740993n });
  });

  test.each([
    "",
    "{",
    "01",
    "+1",
    "1.",
    ".5",
    "1e",
    "NaN",
    "Infinity",
    "0x10",
    "1_000",
    "'a'",
    "[1,]",
    "{}{}",
  ])("%p is refused as no JSON", (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
    expect(() => parseJson(`[${text},1e3]`)).toThrow(SyntaxError);
  });

  test("nesting that would overflow the stack is refused like any bad body", () => {
    const deep = 30_000;
    expect(() => parseJson("[".repeat(deep) + "1e3" + "]".repeat(deep))).toThrow(SyntaxError);
  });

  test("a number of 60,000 digits costs no more than its length", () => {
    const zeros = "0".repeat(60_000);
    for (const text of [`1.${zeros}1`, `0.${zeros}1e60000`, `1${zeros}`, `-1${zeros}1`, `1${zeros}e-60001`]) {
      const started = performance.now();
      expect(readField(text)).toBeInstanceOf(Invalid);
      expect(performance.now() - started).toBeLessThan(500);
    }
    expect(readField(`1.${zeros}`)).toBe(1n);
    expect(readField(`1${zeros}e-60000`)).toBe(1n);
  });
});

describe("toJson", () => {
  test("writes bigints as integers that parseJson reads back", () => {
    fc.assert(
      fc.property(anyInt64, (n) => {
        expect(toJson({ n })).toBe(`{"n":${n}}`);
        expect(int64().read(parseJson(toJson(n)))).toBe(n);
      }),
    );
  });

  test("indents when asked to", () => expect(toJson({ a: [1n] }, 2)).toBe('{\n  "a": [\n    1\n  ]\n}'));
});

describe("parseIdentifier", () => {
  test("any int64 in plain decimal is one", () => {
    fc.assert(fc.property(anyInt64, (n) => expect(BigInt(parseIdentifier(String(n)) ?? 0)).toBe(n)));
  });

  test("whatever is read is written back the same", () => {
    const near = fc.string({ unit: fc.constantFrom(..."0123456789-+.e "), maxLength: 21 });
    fc.assert(
      fc.property(fc.oneof(fc.string(), near), (text) => {
        const id = parseIdentifier(text);
        if (id !== undefined) expect(String(id)).toBe(text);
      }),
    );
  });

  const otherSpellings = [
    "",
    "01",
    "+1",
    "-0",
    "00",
    "1.0",
    "1e3",
    "abc",
    " 1",
    "1 ",
    "1\n",
    "0x1",
    "١",
    "1_0",
  ];
  const outOfRange = ["9223372036854775808", "-9223372036854775809", "99999999999999999999"];
  test.each([...otherSpellings, ...outOfRange])("%p names nothing", (text) =>
    expect(parseIdentifier(text)).toBeUndefined(),
  );
});
