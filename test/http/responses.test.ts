import { expect, test } from "bun:test";
import { headerLinesOf } from "../../src/api/responses.ts";

test("a value that could inject a header line throws", () => {
  for (const value of ["a\r\nB: c", "a\n", "\0", "猫", "\x7f"]) {
    expect(() => headerLinesOf({ A: value })).toThrow("A must be printable ASCII");
  }
  expect(headerLinesOf({ A: 'b; "c"', D: "" })).toBe('A: b; "c"\r\nD: \r\n');
});
