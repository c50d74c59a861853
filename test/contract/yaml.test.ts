import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { toYaml } from "../../src/api/yaml.ts";

test("objects and arrays are blocks, and words are plain", () => {
  const value = { openapi: "3.1.0", tags: [{ name: "Pets", x: [1, [2]] }, {}], "200": [], min: -(2n ** 63n) };
  expect(toYaml(value)).toBe(`"200": []
openapi: "3.1.0"
tags:
  - name: Pets
    x:
      - 1
      - - 2
  - {}
min: -9223372036854775808
`);
});

test("text that YAML could read as something else is quoted", () => {
  const texts = [
    "yes",
    "No",
    "null",
    "~",
    "1e3",
    "0x1f",
    "12:30:45",
    "2026-11-15",
    "a: b",
    "a #b",
    "- a",
    " a",
    "a\nb",
    "",
    "=",
  ];
  for (const text of texts) {
    expect(toYaml(text)).toBe(`${JSON.stringify(text)}\n`);
    expect(Bun.YAML.parse(toYaml({ [text]: text }))).toEqual({ [text]: text });
  }
});

test("a YAML parser reads any JSON value as it was", () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const json: unknown = JSON.parse(JSON.stringify(value));
      expect(Bun.YAML.parse(toYaml(json))).toEqual(json);
    }),
    { numRuns: 500 },
  );
});
