import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { worstBodies } from "../../trials/attacks/worst-bodies.ts";
import { parseJson } from "../../src/api/json.ts";
import { NESTED, NotJson, parseFields } from "../../src/api/json-fields.ts";
import { NewPet } from "../../src/domain/pets-and-orders.ts";
import { array, int64, integer, Invalid, nullable, object, text as textOf } from "../../src/api/schema.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { isEverFasterThan } from "../timing.ts";

const NAMES = ["name", "categoryId", "status"];

/** Starts the scan of the whole text, as any nested value does. */
const SCANNED = { first: '{"first":[],', last: ',"last":{}}' };

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const accepts = (text: string) => !(parseFields(text, { names: NAMES }) instanceof NotJson);

const space = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 3 });
/** What JSON is made of, and what resembles it. */
const PIECES = [
  ..."{}[]:,\"\\/0123456789-+.eE \t\n\r\0\v\f\u001f\u007f\u00a0\u2028\ufeff'abfnrtuTNxé",
  ...'true false null NaN Infinity undefined "" "a" "name": "__proto__": \ud800 /**/'.split(" "),
  ..."\\ud800 \\u12 \\u004 \\u00g0 \\x41 1e5 -0 01 1. .5 1e 1e+ 0x1".split(" "),
];
const piece = fc.constantFrom(...PIECES);
const soup = fc.string({ unit: piece, maxLength: 12 });
const ESCAPES = String.raw`\" \\ \/ \b \n \u0041 \uD83D\uDE00 \uDFff \u0000`.split(" ");
const string = fc
  .array(
    fc.oneof(
      fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text).slice(1, -1)),
      fc.constantFrom(...ESCAPES),
    ),
  )
  .map((parts) => `"${parts.join("")}"`);
const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom("0", "-0", "1E5", "1e-5", "1.50e+005", "-0.0", "1e999999999", "9007199254740993", "0.0e0"),
);

/** JSON text with white space, duplicate names, escapes and odd numbers. */
const { value: json } = fc.letrec<{ value: string; array: string; object: string }>((tie) => {
  const list = (item: fc.Arbitrary<string>) =>
    fc.array(
      fc.tuple(space, item, space).map((parts) => parts.join("")),
      { maxLength: 4 },
    );
  const name = fc.oneof(string, fc.constantFrom('"name"', '"__proto__"', '"999"', '""', '"n\\u0061me"'));
  const member = fc.tuple(name, space, space, tie("value"));
  const scalar = fc.oneof(string, number, fc.constantFrom("true", "false", "null"));
  return {
    value: fc.oneof({ maxDepth: 4, depthSize: "small" }, scalar, tie("array"), tie("object")),
    array: fc.tuple(list(tie("value")), space).map(([items, blank]) => `[${items.join(",") || blank}]`),
    object: fc
      .tuple(list(member.map(([key, before, after, value]) => `${key}${before}:${after}${value}`)), space)
      .map(([members, blank]) => `{${members.join(",") || blank}}`),
  };
});

const mutated = fc
  .tuple(json, fc.nat(), fc.nat(3), fc.oneof(piece, fc.constant("")))
  .map(([text, at, removed, inserted]) => {
    const position = at % (text.length + 1);
    return text.slice(0, position) + inserted + text.slice(position + removed);
  });

describe("parseFields accepts exactly what JSON.parse accepts:", () => {
  const expectSame = (text: string) => {
    const bodies = [text, `{"x":${text}}`, `[${text}]`, `{"x":[{"y":${text}}]}`, `{"x":1e0,${text}}`];
    expect(bodies.filter((body) => accepts(body) !== isJson(body))).toEqual([]);
  };

  test("JSON texts", () => {
    fc.assert(
      fc.property(json, (text) => {
        expect(isJson(text)).toBe(true);
        expectSame(text);
      }),
      { numRuns: 1_000 },
    );
  });

  test("JSON texts with one change", () => {
    fc.assert(fc.property(mutated, expectSame), { numRuns: 2_000 });
  });

  test("pieces of JSON in any order", () => {
    fc.assert(fc.property(soup, expectSame), { numRuns: 2_000 });
  });

  test("every character in a string, before a value and after an escape", () => {
    const wrong: string[] = [];
    for (let code = 0; code < 0x3000; code++) {
      const character = String.fromCharCode(code);
      const texts = [`"${character}"`, `${character}0`, `"\\${character}"`, `"\\u00${character}0"`];
      for (const text of texts.map((each) => `[${each}]`)) {
        if (accepts(text) !== isJson(text)) wrong.push(text);
      }
    }
    expect(wrong).toEqual([]);
  });

  test("nesting as deep as a body can have it", () => {
    for (const [open, close] of [
      ["[", "]"],
      ['{"":', "}"],
      ['[{"a":', "}]"],
    ] as const) {
      const depth = Math.floor(16_384 / (open.length + close.length));
      const text = `${open.repeat(depth)}0${close.repeat(depth)}`;
      expect([accepts(text), isJson(text)]).toEqual([true, true]);
      for (const other of [text.slice(0, -1), text + close, text.replace("0", ""), text.replace("0", "]")]) {
        expect(accepts(other)).toBe(isJson(other));
      }
    }
  });
});

describe("parseFields", () => {
  /** The value with nested objects and arrays as `parseFields` returns them. */
  const flat = (value: unknown) => (typeof value === "object" && value !== null ? NESTED : value);

  test("returns the values that JSON.parse returns, and rejects a name that is there twice", () => {
    const scalar = fc.oneof(
      string,
      fc.integer().map(String),
      fc.constantFrom("true", "false", "null", "{}", "[[]]"),
    );
    const names = String.raw`name n\u0061me categoryId status __proto__ \name x`.split(" ");
    const name = fc.constantFrom(...names.map((each) => `"${each}"`));
    const members = fc.array(fc.tuple(name, scalar), { maxLength: 6 });
    fc.assert(
      fc.property(members, (pairs) => {
        const text = `${SCANNED.first}${pairs.map((pair) => `${pair.join(":")},`).join("")}"x":0${SCANNED.last}`;
        const expected = JSON.parse(text) as Record<string, unknown>;
        const known = NAMES.filter((field) => Object.hasOwn(expected, field));
        const given = pairs.map(([literal]) => JSON.parse(literal.replace("\\name", "other")) as string);
        const repeated = new Set(
          given.filter((each, i) => NAMES.includes(each) && given.indexOf(each) !== i),
        );
        const result = parseFields(text, { names: NAMES });
        if (repeated.size === 0)
          expect(result).toEqual(Object.fromEntries(known.map((field) => [field, flat(expected[field])])));
        else
          expect(result).toEqual(
            new Invalid(
              [...repeated].map((field) => ({ path: [field], message: "must be given only once" })),
            ),
          );
      }),
      { numRuns: 1_000 },
    );
  });

  test("keeps the digits of numbers, beside nested values and without them", () => {
    const read = (literal: string) => [
      NewPet.read(parseFields(`{"name":"Rex","categoryId":${literal}}`, { names: NAMES })),
      NewPet.read(
        parseFields(`{"a":[{"categoryId":1}],"name":"Rex","categoryId":${literal}}`, { names: NAMES }),
      ),
    ];
    const rex = (categoryId: bigint) => ({ name: "Rex", categoryId });
    expect(read("9007199254740993")).toEqual([rex(9007199254740993n), rex(9007199254740993n)]);
    expect(read("1.0")).toEqual([rex(1n), rex(1n)]);
    expect(read("1e3")).toEqual([rex(1000n), rex(1000n)]);
    for (const literal of '1e999999999 1.5 9007199254740992.5 9223372036854775808 "1" [1] {}'.split(" ")) {
      for (const result of read(literal)) {
        expect(result).toEqual(new Invalid("must be an integer from -2^63 to 2^63 - 1", "categoryId"));
      }
    }
  });
});

describe("a name that is there twice", () => {
  const repeats = (text: string) => {
    const result = parseFields(text, { names: NAMES });
    return result instanceof Invalid ? result.problems.map(({ path }) => path.join(".")) : [];
  };

  test.each<[text: string, repeated: string[]]>([
    ['{"name":"Rex","categoryId":7,"name":"Max"}', ["name"]],
    ['{"name":"Rex","n\\u0061me":"Max"}', ["name"]],
    ['{"name":1,"name":2,"status":"sold","status":"sold","name":3}', ["name", "status"]],
    ['{"name":"a:b","name":"c"}', ["name"]],
    // It says nothing about a field, so nobody acts upon it.
    ['{"name":"Rex","x":1,"x":2}', []],
    ['{"name":"Rex","a":{"name":"Max"},"b":[{"name":"Max","name":"Max"}]}', []],
    ['{"name":"::: \\"name\\": :::","categoryId":7}', []],
    ['{"name":"name","status":"name"}', []],
  ])("%s", (text, repeated) => {
    expect(repeats(text)).toEqual(repeated);
    expect(repeats(`${text.slice(0, -1)},"nested":[{}]}`)).toEqual(repeated);
  });

  test("is found in objects of the schema, and named with them", () => {
    const Limits = object("", { perMinute: int64() }, {});
    const shapes = object("", { limits: nullable(Limits) }, { all: array(Limits) });
    const text =
      '{"limits":{"perMinute":1,"perMinute":1},"all":[{"perMinute":1},{"perMinute":1,"perMinute":2}]}';
    expect(parseFields(text, shapes)).toEqual(
      new Invalid(
        ["limits", "all"].map((name) => ({ path: [name, "perMinute"], message: "must be given only once" })),
      ),
    );
  });
});

describe("what is not JSON has the line and the column of the first error:", () => {
  test.each<[text: string, line: number, column: number]>([
    ["", 1, 1],
    ['{"name":', 1, 9],
    ['{"name":"Rex"', 1, 14],
    ['{"name":"Rex",}', 1, 15],
    ["{'name':'Rex'}", 1, 2],
    ['{"name" "Rex"}', 1, 9],
    ['{\n  "name": "Rex",\n  "categoryId": 07\n}', 3, 18],
    ['{\r\n  "name": "Rex"\r\n  "categoryId": 7\r\n}', 3, 3],
    ['{"name":"🐕🐕","categoryId":NaN}', 1, 27],
    ['{"name":"R\tex"}', 1, 9],
    ['{"a":[{"b":1},]}', 1, 15],
    ['{"name":"Rex"} x', 1, 16],
    ["[1,2", 1, 5],
  ])("%j", (text, line, column) => {
    expect(parseFields(text, { names: NAMES })).toMatchObject({ line, column });
    const padded = `${" ".repeat(2_000)}\n${text}`;
    expect(parseFields(padded, { names: NAMES })).toMatchObject({ line: line + 1, column });
  });
});

describe("a body of 16 KiB takes at most 2 ms:", () => {
  for (const [description, body] of worstBodies(16_384)) {
    test(description, () => {
      expect(Buffer.byteLength(body)).toBeGreaterThan(16_000);
      expect(Buffer.byteLength(body)).toBeLessThanOrEqual(16_384);
      expect(isEverFasterThan(2, () => NewPet.read(parseFields(body, { names: NAMES })))).toBe(true);
    });
  }
});

describe("objects and arrays in a body", () => {
  const Limits = object("", { perMinute: integer({ min: 1, max: 100 }) }, { perDay: int64() });
  const schema = object("", { limits: nullable(Limits) }, { labels: array(textOf(9)), all: array(Limits) });

  test("are read where the schema has them, and as JSON.parse reads them", () => {
    const json = fc.letrec<{ value: string }>((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.constantFrom("1", "2.0", "9007199254740993", '"a"', "null", "{}", "[]"),
        fc.array(tie("value"), { maxLength: 3 }).map((values) => `[${values.join(" , ")}]`),
        fc
          .uniqueArray(
            fc.tuple(fc.constantFrom("limits", "perMinute", "perDay", "labels", "all", "x"), tie("value")),
            {
              maxLength: 4,
              selector: ([name]) => name,
            },
          )
          .map((fields) => `{${fields.map(([name, value]) => `"${name}" :${value}`).join(",")}}`),
      ),
    })).value;
    const body = fc
      .tuple(json, json, json)
      .map(([limits, labels, all]) => `{"x":[0],"limits":${limits},"labels":${labels},"all":${all}}`);
    const valid =
      '{"x":[0],"limits":{"perMinute":1,"x":{},"perDay":9007199254740993},"labels":["a"],"all":[]}';
    const readBoth = (text: string) => [schema.read(parseFields(text, schema)), schema.read(parseJson(text))];
    expect(readBoth(valid)[0]).toMatchObject({ limits: { perMinute: 1, perDay: 9007199254740993n } });
    fc.assert(
      fc.property(fc.oneof(body, json), (text) => {
        const [scanned, parsed] = readBoth(text);
        expect(scanned).toEqual(parsed);
      }),
      { numRuns: 2_000 },
    );
  });

  const BODIES = Object.entries<AdminOperation>(ADMIN_OPERATIONS).flatMap(([id, row]) =>
    row.body ? [[id, row.body] as const] : [],
  );
  const fill = (start: string, unit: string, end: string) =>
    start + unit.repeat(Math.floor((65_536 - start.length - end.length) / unit.length)) + end;

  test.each(BODIES)("64 KiB for %s take at most 10 ms, in whichever field they are", (_, shapes) => {
    for (const name of [...shapes.names, "unknown"]) {
      for (const body of [
        fill(`{"${name}":[0`, ',{"999":0}', "]}"),
        fill(`{"${name}":{"a":0`, ',"b":{"999":0}', "}}"),
        fill(`{"${name}":[0`, ",[[[]]]", "]}"),
        fill(`{"${name}":[0`, ',"a"', "]}"),
      ])
        expect(isEverFasterThan(10, () => shapes.read(parseFields(body, shapes)))).toBe(true);
    }
  });
});
