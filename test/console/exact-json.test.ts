import { expect, test } from "bun:test";
import { parseExactJson } from "../../src/console/exact-json.ts";

test("integers that a double cannot represent are bigints", () => {
  expect(parseExactJson('{"id":9007199254740993,"min":-9223372036854775808}')).toEqual({
    id: 9_007_199_254_740_993n,
    min: -9_223_372_036_854_775_808n,
  });
});

test("other numbers are numbers", () => {
  expect(parseExactJson("[0,-1,2.5,9007199254740991,1e3]")).toEqual([
    0, -1, 2.5, 9_007_199_254_740_991, 1_000,
  ]);
});

test("text that looks like a number stays text", () => {
  expect(parseExactJson('["9007199254740993",null,true]')).toEqual(["9007199254740993", null, true]);
});
