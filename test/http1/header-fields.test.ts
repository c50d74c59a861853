import { describe, expect, test } from "bun:test";
import { HeaderFields } from "../../src/http1/header-fields.ts";

const parse = (...lines: string[]) => HeaderFields.parse(lines.map((line) => `${line}\r\n`).join(""));

function parseValid(...lines: string[]): HeaderFields {
  const fields = parse(...lines);
  if (typeof fields === "number") throw new Error(`rejected with ${fields}`);
  return fields;
}

describe("header fields", () => {
  test("are found by name in any case, without the whitespace around their values", () => {
    const fields = parseValid("Host: a", "CONTENT-type:\t application/json \t", "Empty:");
    const values = ["host", "content-type", "empty", "other"].map((name) => fields.get(name));
    expect(values).toEqual(["a", "application/json", "", null]);
  });

  test("with the same name are joined in their order", () => {
    const fields = parseValid("A: 1", "B: 2", "a: 3");
    expect([fields.get("a"), fields.count("a"), fields.count("c")]).toEqual(["1, 3", 2, 0]);
  });

  test("may contain bytes beyond ASCII, which are preserved", () => {
    expect(parseValid("A: \xe9\xa0").get("a")).toBe("\xe9\xa0");
  });

  test.each([
    ["a space before the colon", "A : b"],
    ["a folded line", "A: b\r\n c"],
    ["no colon", "Ab"],
    ["no name", ": b"],
    ["a space in the name", "A b: c"],
    ["CR alone", "A: b\rc"],
    ["LF alone", "A: b\nC: d"],
    ["NUL", "A: b\0"],
    ["another control character", "A: b\x7f"],
    ["a name beyond ASCII", "\xc4: b"],
  ])("400: %s", (_, line) => {
    expect(parse("Host: x", line)).toBe(400);
  });
});
