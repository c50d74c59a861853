import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { OPTIONS } from "../../src/config/options.ts";
import { type Option, variableOf } from "../../src/config/parse-options.ts";
import { quoted } from "../../src/config/usage-error.ts";
import { parseConfig, usageError } from "./parsing.ts";

describe("flags, variables and defaults", () => {
  test("a flag overrides a variable, and a variable overrides the default", () => {
    expect(parseConfig({}, { PETSTORE_PORT: "9001" }).port).toBe(9001);
    expect(parseConfig({ port: ["9000"] }, { PETSTORE_PORT: "9001" }).port).toBe(9000);
  });

  test("a wrong variable is ignored when the flag is given", () => {
    expect(parseConfig({ port: ["9000"] }, { PETSTORE_PORT: "many" }).port).toBe(9000);
  });

  test("an empty variable counts as not set, an empty flag is a value", () => {
    expect(parseConfig({}, { PETSTORE_PORT: "", PETSTORE_DATA: "" })).toEqual(parseConfig());
    expect(usageError({ port: [""] })).toBe('--port is ""; it must be an integer from 0 to 65535');
  });

  test("every option has its own variable", () => {
    const variables = Object.keys(OPTIONS).map(variableOf);
    expect(new Set(variables).size).toBe(variables.length);
    expect(variables).toContain("PETSTORE_TRUST_PROXY");
  });

  test("a message names the flag or the variable that is wrong", () => {
    const expected = "it must be an integer from 0 to 65535";
    expect(usageError({ port: ["65536"] })).toBe(`--port is "65536"; ${expected}`);
    expect(usageError({}, { PETSTORE_PORT: "many" })).toBe(`PETSTORE_PORT is "many"; ${expected}`);
  });

  test("a flag can be given once, unless it is repeatable", () => {
    expect(usageError({ port: ["1", "2"] })).toBe("--port is given more than once");
    expect(parseConfig({ "trust-proxy": ["10.0.0.0/8", "192.0.2.1"] }).trustedProxies).toHaveLength(2);
  });

  test.each(Object.entries<Option>(OPTIONS).filter(([, option]) => option.default !== undefined))(
    "the default of --%s is a valid value",
    (_flag, { type, default: value }) => {
      const typed = type.format(value);
      if (typed !== "") expect(type.parse(typed)).toEqual(value);
    },
  );

  test.each(Object.entries<Option>(OPTIONS).filter(([, { type }]) => type.placeholder === "TIME"))(
    "the examples for --%s are valid",
    (_flag, { type }) => {
      const [, examples = ""] = /such as (.+)$/.exec(type.expected) ?? [];
      const durations = examples.split(/, | or /);
      expect(durations.length).toBeGreaterThan(1);
      expect(durations.filter((text) => type.parse(text) === undefined)).toEqual([]);
    },
  );
});

describe("user input in messages", () => {
  test("a secret that was pasted by mistake is masked", () => {
    expect(quoted("pet_live_0123456789abcdef")).toBe('"pet_live_…"');
    expect(usageError({ port: ["pet_test_0123456789abcdef"] })).not.toContain("0123456789");
  });

  test("any text becomes one short line of printable characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const line = quoted(text);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        expect(line.length).toBeLessThan(1_000);
      }),
    );
  });
});
