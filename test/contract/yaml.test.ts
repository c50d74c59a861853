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
  const words = "yes No null ~ 1e3 0x1f 12:30:45 2026-11-15 =".split(" ");
  const texts = [...words, "a: b", "a #b", "- a", " a", ""];
  for (const text of texts) {
    expect(toYaml(text)).toBe(`${JSON.stringify(text)}\n`);
    expect(Bun.YAML.parse(toYaml({ [text]: text }))).toEqual({ [text]: text });
  }
});

test("several lines are a literal block, and a long line is folded", () => {
  expect(toYaml({ a: ["x: 1\n- y"] })).toBe("a:\n  - |-\n    x: 1\n    - y\n");
  const words = "word ".repeat(30).trim();
  expect(toYaml({ a: words })).toBe(
    `a: >-\n  ${"word ".repeat(20).trim()}\n  ${"word ".repeat(10).trim()}\n`,
  );
  for (const text of [" a\nb", "a\n", "a \nb", "a\tb\nc", `${words}  ${words}`])
    expect(toYaml(text)).toBe(`${JSON.stringify(text)}\n`);
});

test("a YAML parser reads any text of words as it was", () => {
  const word = fc.stringMatching(/^[!-~¡-ÿ]{1,30}$/);
  const text = fc
    .array(fc.tuple(word, fc.constantFrom(" ", " ", "\n", "\n\n")))
    .map((parts) => parts.flat().join("").trim());
  fc.assert(
    fc.property(text, (value) => {
      expect(Bun.YAML.parse(toYaml({ a: [value], b: value }))).toEqual({ a: [value], b: value });
    }),
    { numRuns: 500 },
  );
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
