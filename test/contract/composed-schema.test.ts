import Ajv2020 from "ajv/dist/2020";
import addFormats from "ajv-formats";
import { describe, expect, test } from "bun:test";
import {
  array,
  boolean,
  dateTime,
  integer,
  Invalid,
  line,
  nullable,
  object,
  oneOf,
  quantity,
  queryIdentifier,
  type ObjectSchema,
  type Schema,
} from "../../src/api/schema.ts";

const ajv = addFormats(new Ajv2020({ strict: false }));

/** A value that the schema accepts, its JSON Schema accepts too; and so for those that it rejects. */
function expectRead(schema: Schema<unknown>, valid: readonly unknown[], invalid: readonly unknown[]): void {
  const validate = ajv.compile(schema.json);
  for (const value of valid) {
    expect(schema.read(value)).toEqual(value);
    expect([value, validate(value)]).toEqual([value, true]);
  }
  for (const value of invalid) {
    expect([value, schema.read(value)]).toEqual([value, expect.any(Invalid)]);
    expect([value, validate(value)]).toEqual([value, false]);
  }
}

const problemsOf = (schema: Schema<unknown> | ObjectSchema<unknown>, value: unknown) => {
  const result = "readBody" in schema ? schema.readBody(value) : schema.read(value);
  return result instanceof Invalid ? result.problems : [];
};

test("boolean: nothing is coerced", () => {
  expectRead(boolean(), [true, false], [0, 1, "true", null, undefined]);
});

test("integer: within its bounds", () => {
  expectRead(integer({ min: 0, max: 10 }), [0, 10], [-1, 11, 1.5, "5", null, true]);
  expect(problemsOf(integer({ min: 0, max: 1_000 }), 1_001)).toEqual(["must be an integer from 0 to 1,000"]);
});

test("quantity: zero or more", () => {
  expectRead(quantity(), [0, 0.5, 1e9], [-0.1, "1", null]);
});

test("line: one line that is not blank, counted in code points", () => {
  expectRead(
    line(3),
    ["a", "a b", "🐕🐕🐕"],
    ["", "  ", "a\nb", "a\tb", "abcd", "🐕🐕🐕🐕", "a\u2028b", 5, null],
  );
  expect(line(3).read("\ud800")).toBeInstanceOf(Invalid);
});

test("dateTime: RFC 3339 with an offset, on the calendar", () => {
  expectRead(
    dateTime(),
    ["2026-11-15T09:30:00Z", "2026-11-15T09:30:00.123Z", "2026-11-15T09:30:00+01:00", "2028-02-29T00:00:00Z"],
    [
      "2026-11-15",
      "2026-11-15T09:30:00",
      "15.11.2026",
      "2026-02-30T00:00:00Z",
      "2026-11-15T25:00:00Z",
      0,
      null,
      "",
    ],
  );
});

test("nullable: null too", () => {
  expectRead(nullable(oneOf(["a", "b"])), ["a", null], ["c", 5, undefined]);
  expect(problemsOf(nullable(boolean()), 5)).toEqual(["must be true or false, or null"]);
});

describe("array", () => {
  test("every item is checked, and the problem names its index", () => {
    const schema = array(integer({ min: 0, max: 9 }), { max: 3 });
    expectRead(schema, [[], [1], [1, 1, 1]], [[10], [1, "2"], [1, 2, 3, 4], {}, "1", null]);
    expect(problemsOf(schema, [1, 2, 99])).toEqual(["[2] must be an integer from 0 to 9"]);
    expect(problemsOf(schema, [1, 2, 3, 4])).toEqual(["must be an array of at most 3 items"]);
  });

  test("different items, if they have to be", () => {
    expectRead(array(line(5), { max: 3, areUnique: true }), [["a", "b"]], [["a", "a"]]);
  });
});

describe("an object in an object", () => {
  const inner = object({}, { a: boolean() }, { b: integer({ min: 1, max: 2 }) });
  const outer = object({}, { inner }, { list: array(inner) });

  test("the problem of an inner field begins with its path", () => {
    expect(outer.read({ inner: { a: true, b: 2 } })).toEqual({ inner: { a: true, b: 2 } });
    expect(problemsOf(outer, { inner: { b: 3 } })).toEqual([
      "inner.a is required and must be true or false",
      "inner.b must be an integer from 1 to 2",
    ]);
    expect(problemsOf(outer, { inner: { a: true }, list: [{ a: true }, { a: 0 }] })).toEqual([
      "list[1].a must be true or false",
    ]);
  });

  test("another value than an object is named", () => {
    for (const value of [null, [], "x", 5]) {
      expect(problemsOf(outer, { inner: value })).toEqual(["inner must be a JSON object"]);
    }
  });
});

test("queryIdentifier: any int64 in plain decimal, exact", () => {
  const schema = queryIdentifier();
  expect(schema.read("9007199254740993")).toBe(9_007_199_254_740_993n);
  expect(schema.read("-1")).toBe(-1n);
  for (const text of ["", "01", "+1", "1.0", "abc", "9223372036854775808", 5]) {
    expect(schema.read(text)).toBeInstanceOf(Invalid);
  }
});
