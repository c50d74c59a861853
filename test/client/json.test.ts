import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { int64, parseJson, toJson } from "../../src/client/json.ts";

describe("parseJson", () => {
  test("every integer is an exact bigint", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (id) => {
        expect(parseJson(`[{"id": ${id}}]`)).toEqual([{ id }]);
      }),
    );
  });

  test("everything else is as JSON.parse reads it", () => {
    const withoutIntegers = fc
      .json()
      .map((text) => JSON.parse(text, (_, value) => (typeof value === "number" ? String(value) : value)));
    fc.assert(
      fc.property(withoutIntegers, fc.boolean(), (value, isIndented) => {
        const text = JSON.stringify(value, null, isIndented ? 2 : 0);
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test("strings may look like anything", () => {
    const text = '{"a\\"}":"[1,\\"2\\\\","__proto__":"x","b":[1.5,-0.1e2,true,null,{},[]]}';
    expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(JSON.parse(text)));
  });

  test.each(["", "[1", "{a:1}", "01", "[1,]", "<html>"])("%j is a SyntaxError", (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  });
});

test.each([BigInt, String])("a field whose type is number has a number beside %p", (integer) => {
  const numbers = new Set(["ageMonths"]);
  const text = '{"id": 7, "ageMonths": 18, "name": "8"}';
  expect(parseJson(text, integer, numbers)).toEqual({ id: integer("7"), ageMonths: 18, name: "8" });
});

test("toJson writes bigints with all digits and leaves undefined out", () => {
  expect(toJson({ name: 'a"b', categoryId: 9007199254740993n, status: undefined })).toBe(
    '{"name":"a\\"b","categoryId":9007199254740993}',
  );
  const nested = { a: [1n, undefined, { b: null, at: new Date(0) }], c: "d" };
  expect(toJson(nested)).toBe('{"a":[1,null,{"b":null,"at":"1970-01-01T00:00:00.000Z"}],"c":"d"}');
});

test.each([1.5, 2 ** 53, Number.NaN, "", "0x7"])("%p is not taken as an int64", (value) => {
  expect(() => int64("categoryId", value)).toThrow(TypeError);
});
