import Ajv2020 from "ajv/dist/2020";
import addFormats from "ajv-formats";
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { Rejection } from "../../src/api/errors.ts";
import { INT64_MAX, INT64_MIN } from "../../src/api/json.ts";
import {
  array,
  boolean,
  dateTime,
  int64,
  integer,
  Invalid,
  line,
  nullable,
  object,
  oneOf,
  type InputProblem,
  quantity,
  queryIdentifier,
  queryInteger,
  readRows,
  type Schema,
  text,
} from "../../src/api/schema.ts";
import {
  encodeOrder,
  encodePet,
  NewOrder,
  NewPet,
  Order,
  OrderUpdate,
  Pet,
} from "../../src/domain/pets-and-orders.ts";
import { parseJson } from "../exact-json.ts";

const problemsOf = (schema: Schema<unknown>, value: unknown) => {
  const result = schema.read(value);
  return result instanceof Invalid ? result.problems : [];
};
const itself = (message: string) => [{ path: [], message }];

const ajv = addFormats(new Ajv2020({ strict: false }));

/** One value of every type, and some that look valid. */
const KINDS = [undefined, Number.NaN, 2 ** 53, 5n, null, true, false, 0, 1, -1, 1.5, "", "5", [], {}];
const NO_LIMITS = "0 101 05 +5 -5 5.0 5e0 0x5 five 1000000000000 ٥".split(" ");
const NO_IDENTIFIERS = "01 +1 1.0 abc 9223372036854775808".split(" ");
const STATUSES = ["available", "pending", "sold"] as const;

test.each<[Schema<unknown>, expected: string, valid: readonly unknown[], invalid: readonly unknown[]]>([
  [
    int64(),
    "an integer from -2^63 to 2^63 - 1",
    [5n, 0, 1, -1, INT64_MAX, INT64_MIN],
    [INT64_MAX + 1n, INT64_MIN - 1n],
  ],
  [oneOf(STATUSES), 'one of "available", "pending" or "sold"', STATUSES, ["Sold", "sold ", "toString"]],
  [
    text(1024),
    "a string of 1 to 1,024 characters that is not blank and has no NUL or lone surrogate",
    ["5", " Rex ", "🐕".repeat(1024), "x".repeat(1024)],
    ["🐕".repeat(1025), "x".repeat(1025), " ", "\t\n", "\u00a0\u3000", "a\0b", "\0", "\ud83d", "a\udc15"],
  ],
  [
    queryInteger({ min: 1, max: 100, default: 20 }),
    "an integer from 1 to 100",
    ["1", "5", "100"],
    [...NO_LIMITS, " 5", "5 "],
  ],
  [
    queryIdentifier(),
    "a decimal integer from -2^63 to 2^63 - 1",
    ["5", "-1", "9007199254740993"],
    NO_IDENTIFIERS,
  ],
])("%#: values are taken as they are, and others have one problem", (schema, expected, valid, invalid) => {
  for (const value of valid) expect(String(schema.read(value))).toBe(String(value));
  const others = KINDS.filter((kind) => !valid.includes(kind));
  for (const value of [...others, ...invalid])
    expect([value, problemsOf(schema, value)]).toEqual([value, itself(`must be ${expected}`)]);
});

describe("object", () => {
  test("a field that is null or undefined is invalid, not missing", () => {
    expect(problemsOf(NewPet, { name: "Rex", categoryId: 1, status: undefined })).toHaveLength(1);
    expect(problemsOf(NewOrder, { petId: null })).toEqual([
      { path: ["petId"], message: "must be an integer from -2^63 to 2^63 - 1" },
    ]);
  });

  test("anything but an object is rejected", () => {
    for (const value of KINDS.slice(0, -1))
      expect(problemsOf(NewPet, value)).toEqual(itself("must be a JSON object"));
  });

  test("unknown fields and inherited ones are ignored", () => {
    expect(NewOrder.read({ petId: 1, color: "red" })).toEqual({ petId: 1n });
    expect(NewOrder.read(parseJson('{"__proto__":{"petId":1}}'))).toBeInstanceOf(Invalid);
    expect(object({ toString: text(5) }).read({})).toBeInstanceOf(Invalid);
  });

  test("any set of invalid fields is reported, each once", () => {
    const good = { name: "Rex", categoryId: 1, status: "sold" } as const;
    const bad = fc.constantFrom<unknown>(null, true, [], {}, 1.5, "");
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom("name", "categoryId", "status"), bad), (broken) => {
        const named = problemsOf(NewPet, { ...good, ...broken }).map(({ path }) => path);
        expect(named).toEqual(Object.keys(good).flatMap((field) => (field in broken ? [[field]] : [])));
      }),
    );
  });
});

describe("the JSON Schema accepts what read accepts", () => {
  /** Validates by the schema as the OpenAPI document has it: its bounds are numbers. */
  const validatorOf = ({ json }: Schema<unknown>) =>
    ajv.compile(
      JSON.parse(JSON.stringify(json, (_, value) => (typeof value === "bigint" ? Number(value) : value))),
    );

  const name = fc.oneof(
    fc.string({ unit: "binary", maxLength: 4 }),
    fc.constantFrom(" ", "\0", "x".repeat(1024), "🐕".repeat(1024), "🐕".repeat(1025)),
  );
  const kind = fc.constantFrom<unknown>(null, true, 1, -7, 1.5, "", "5", "sold", "Sold", "completed", [], {});
  const field = fc.oneof(name, kind);
  const body = fc.record(
    { name: field, categoryId: field, status: field, petId: field, id: field, other: field },
    { requiredKeys: [] },
  );

  test.each([
    ["NewPet", NewPet],
    ["NewOrder", NewOrder],
    ["OrderUpdate", OrderUpdate],
    ["Pet", Pet],
  ] as [string, Schema<unknown>][])("%s", (_, schema) => {
    const validate = validatorOf(schema);
    fc.assert(
      fc.property(fc.oneof(body, kind), (value) => {
        expect(validate(value)).toBe(!(schema.read(value) instanceof Invalid));
      }),
      { numRuns: 500 },
    );
  });
});

describe("encoding", () => {
  const id = fc.bigInt({ min: INT64_MIN, max: INT64_MAX });

  test("decoding the JSON of any pet gives the same pet", () => {
    const status = fc.constantFrom("available", "pending", "sold", undefined);
    const name = fc
      .string({ unit: "binary", minLength: 1, maxLength: 30 })
      .filter((value) => /\S/.test(value));
    fc.assert(
      fc.property(
        id,
        name.filter((value) => !value.includes("\0")),
        id,
        status,
        (id, name, categoryId, status) => {
          const pet: Pet = { id, name, categoryId, ...(status && { status }) };
          expect(Pet.read(parseJson(encodePet(pet)))).toEqual(pet);
        },
      ),
    );
  });

  test("decoding the JSON of any order gives the same order", () => {
    const status = fc.constantFrom("placed", "completed", "cancelled");
    const createdAt = fc.date({ noInvalidDate: true, min: new Date(0), max: new Date("9999-01-01") });
    fc.assert(
      fc.property(id, id, status, createdAt, (id, petId, status, date) => {
        const order: Order = { id, petId, status, createdAt: date.toISOString() };
        expect(Order.read(parseJson(encodeOrder(order)))).toEqual(order);
      }),
    );
  });
});

const TIMES = ["2026-11-15T09:30:00Z", "2026-11-15T09:30:00.123+01:00", "2028-02-29T00:00:00Z"];
const NO_TIMES = ["2026-11-15", "2026-11-15T09:30:00", "15.11.2026", "2026-02-30T00:00:00Z", "", 0, null];
const digit = integer({ min: 0, max: 9 });

test("dateTime: an instant that RFC 3339 can write in UTC, which JSON Schema cannot say", () => {
  for (const time of ["9999-12-31T23:59:59.999Z", "0000-01-01T00:00:00Z"])
    expect(dateTime().read(time)).toBe(time);
  for (const time of ["9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01"])
    expect(dateTime().read(time)).toBeInstanceOf(Invalid);
});

test.each<[string, Schema<unknown>, valid: readonly unknown[], invalid: readonly unknown[]]>([
  ["boolean: nothing is coerced", boolean(), [true, false], [0, 1, "true", null, undefined]],
  ["integer: within its bounds", digit, [0, 9], [-1, 10, 1.5, "5", null, true]],
  ["quantity: zero or more", quantity(), [0, 0.5, 1e9], [-0.1, "1", null]],
  ["line: not blank", line(3), ["a", "a b"], ["", "  ", 5, null]],
  ["line: one line", line(3), [], ["a\nb", "a\tb", "a\u2028b"]],
  ["line: counted in code points", line(3), ["🐕🐕🐕"], ["abcd", "🐕🐕🐕🐕"]],
  ["dateTime: RFC 3339 with an offset, on the calendar", dateTime(), TIMES, NO_TIMES],
  ["nullable: null too", nullable(oneOf(["a", "b"])), ["a", null], ["c", 5, undefined]],
  [
    "array: at most so many",
    array(digit, { max: 3 }),
    [[], [1, 1, 1]],
    [[10], [1, "2"], [1, 2, 3, 4], {}, null],
  ],
  ["array: different items", array(line(5), { max: 3, areUnique: true }), [["a", "b"]], [["a", "a"]]],
])("%s, and so says its JSON Schema", (_, schema, valid, invalid) => {
  const validate = ajv.compile(schema.json);
  for (const value of valid) expect([schema.read(value), validate(value)]).toEqual([value, true]);
  for (const value of invalid)
    expect([value, schema.read(value), validate(value)]).toEqual([value, expect.any(Invalid), false]);
});

test.each<[Schema<unknown>, unknown, message: string, ...path: InputProblem["path"]]>([
  [integer({ min: 0, max: 1_000 }), 1_001, "must be an integer from 0 to 1,000"],
  [line(3), "\ud800", "must be a string of 1 to 3 characters on one line that is not blank"],
  [nullable(boolean()), 5, "must be true or false, or null"],
  [array(digit, { max: 3 }), [1, 2, 99], "must be an integer from 0 to 9", 2],
  [nullable(array(digit, { max: 3 })), [99], "must be an integer from 0 to 9", 0],
  [nullable(array(digit, { max: 3 })), 5, "must be an array of at most 3 items, or null"],
  [array(digit, { max: 3 }), [1, 2, 3, 4], "must be an array of at most 3 items"],
])("%#: a problem says what is expected, and where", (schema, value, message, ...path) =>
  expect(problemsOf(schema, value)).toEqual([{ path, message }]),
);

test("readRows leaves out the rows of each list that are invalid, and nothing else", () => {
  const row = object({ a: digit });
  const schema = object("", { items: array(row), labels: array(line(3)) }, { others: array(row) });
  const value = { items: [{ a: 1 }, { a: 10 }, { a: 2 }], labels: ["x"], others: [{}, null, { a: 3 }] };
  expect(readRows(schema, value)).toEqual({
    value: { items: [{ a: 1 }, { a: 2 }], labels: ["x"], others: [{ a: 3 }] },
    unreadable: 3,
  });
  expect(readRows(schema, { items: [], labels: [] })).toMatchObject({ unreadable: 0 });
  for (const invalid of [{ ...value, labels: [5] }, { ...value, items: 5 }, null, []])
    expect(readRows(schema, invalid)).toBeInstanceOf(Invalid);
});

describe("an object in an object", () => {
  const inner = object({}, { a: boolean() }, { b: integer({ min: 1, max: 2 }) });
  const outer = object({}, { inner }, { list: array(inner) });

  test("the problem of an inner field has its path", () => {
    expect(outer.read({ inner: { a: true, b: 2 } })).toEqual({ inner: { a: true, b: 2 } });
    expect(problemsOf(outer, { inner: { b: 3 } })).toEqual([
      { path: ["inner", "a"], message: "is required and must be true or false" },
      { path: ["inner", "b"], message: "must be an integer from 1 to 2" },
    ]);
    expect(problemsOf(outer, { inner: { a: true }, list: [{ a: true }, { a: 0 }] })).toEqual([
      { path: ["list", 1, "a"], message: "must be true or false" },
    ]);
  });

  test("another value than an object is named", () => {
    for (const value of [null, [], "x", 5]) {
      expect(problemsOf(outer, { inner: value })).toEqual([
        { path: ["inner"], message: "must be a JSON object" },
      ]);
    }
  });

  test("a rejection says it in one sentence", () => {
    const messageOf = (value: unknown) => new Rejection("invalid_body", problemsOf(outer, value)).message;
    expect(messageOf({ inner: {}, list: [{ a: 0 }, { a: true }] })).toBe(
      "inner.a is required and must be true or false; list[0].a must be true or false.",
    );
    expect(messageOf(5)).toBe("The request body must be a JSON object.");
  });
});
