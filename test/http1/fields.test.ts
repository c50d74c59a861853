import { describe, expect, test } from "bun:test";
import { HeaderFields } from "../../src/http1/header-fields.ts";

const read = (...lines: string[]) => HeaderFields.read(lines.map((line) => `${line}\r\n`).join(""));

describe("fields", () => {
  test("are found by name in any case, without the blanks around their values", () => {
    const fields = read("Host: a", "CONTENT-type:\t application/json \t", "Empty:");
    expect(["host", "content-type", "empty", "other"].map((name) => fields?.get(name))).toEqual([
      "a",
      "application/json",
      "",
      null,
    ]);
  });

  test("that are said twice are one list, in their order", () => {
    const fields = read("A: 1", "B: 2", "a: 3");
    expect([fields?.get("a"), fields?.count("a"), fields?.count("c")]).toEqual(["1, 3", 2, 0]);
  });

  test("that are lists are searched by element, in any case", () => {
    const fields = read("Connection: Upgrade , CLOSE");
    expect(["close", "upgrade", "keep-alive"].map((element) => fields?.lists("connection", element))).toEqual(
      [true, true, false],
    );
  });

  test("may hold bytes beyond ASCII, which stay as they are", () => {
    expect(read("A: \xe9\xa0")?.get("a")).toBe("\xe9\xa0");
  });

  test.each([
    ["a blank before the colon", "A : b"],
    ["a folded line", "A: b\r\n c"],
    ["no colon", "Ab"],
    ["no name", ": b"],
    ["a blank in the name", "A b: c"],
    ["CR alone", "A: b\rc"],
    ["LF alone", "A: b\nC: d"],
    ["NUL", "A: b\0"],
    ["another control character", "A: b\x7f"],
    ["a name beyond ASCII", "\xc4: b"],
  ])("are not sound with %s", (_, line) => {
    expect(read("Host: x", line)).toBeUndefined();
  });
});
