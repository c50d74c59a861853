import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseArguments } from "../../src/cli/arguments.ts";
import { OPTIONS } from "../../src/cli/command-table.ts";

const parse = (...argv: string[]) => parseArguments(argv, OPTIONS);
const error = (...argv: string[]) => parse(...argv).error?.(OPTIONS).message;

const NOTHING = { positionals: [], flags: {}, help: false, version: false, color: "auto" };

test.each([
  // Only the first equals sign separates, and a value may be empty.
  [["--name=a=b"], { flags: { name: ["a=b"] } }],
  [["--name="], { flags: { name: [""] } }],
  [["--name", ""], { flags: { name: [""] } }],
  // A switch takes no value.
  [["keys", "list", "--json", "3"], { positionals: ["keys", "list", "3"], flags: { json: ["true"] } }],
  // A value may begin with one dash; with two dashes it needs an equals sign.
  [["--port", "-1"], { flags: { port: ["-1"] } }],
  [["--name", "-h"], { flags: { name: ["-h"] } }],
  [["--name=--plan"], { flags: { name: ["--plan"] } }],
  // A single dash is a positional, and after two dashes everything is.
  [["-"], { positionals: ["-"] }],
  [["keys", "--", "--port", "-h", "--"], { positionals: ["keys", "--port", "-h", "--"] }],
])("%p is %p", (argv, expected) => {
  expect<object>(parse(...argv)).toEqual({ ...NOTHING, ...expected });
});

test("a switch takes no value, other flags need one, and the first error is reported", () => {
  expect(error("--json=no")).toBe('--json is a switch and takes no value, but got "no"');
  expect(error("--help=no")).toBe('--help is a switch and takes no value, but got "no"');
  expect(error("--name", "--plan", "free")).toStartWith("--name needs a value: ");
  expect(error("--name", "--", "free")).toStartWith("--name needs a value: ");
  expect(error("--name")).toStartWith("--name needs a value: ");
  expect(error("--nmae", "x", "--port")).toContain("--nmae");
  expect(error("--port", "--nmae")).toContain("--port needs");
});

test("help and version are recognised anywhere", () => {
  expect(parse("serve", "--port", "1", "-h").help).toBeTrue();
  expect(parse("--help", "--nonsense").help).toBeTrue();
  expect(parse("--port", "--help").help).toBeTrue();
  expect(parse("--name=--help").help).toBeFalse();
  expect(parse("-v").version).toBeTrue();
  expect(parse("serve", "--version")).toMatchObject({ version: true, help: false });
});

test.each([
  ["--prot", "--port"],
  ["--por", "--port"],
  ["--porrt", "--port"],
  ["--pert", "--port"],
  ["--PORT", "--port"],
  ["--per_minute", "--per-minute"],
  ["-port", "--port"],
  ["--truts-proxy=x", "--trust-proxy"],
  ["--nmae", "--name"],
])("%s is unknown, and %s is suggested", (typed, meant) => {
  expect(error(typed)).toEndWith(`; did you mean ${meant}?`);
});

test.each(["--frobnicate", "-x", "-hx", "-hv", "--__proto__", "--toString", "---", "--no-json"])(
  "%s is unknown",
  (typed) => {
    expect(error(typed)).toBe(`unknown flag "${typed}"; see --help`);
  },
);

test("the form and the place of a flag do not matter", () => {
  const flagsWithValue = Object.entries(OPTIONS).filter(
    ([, { type, isVariableOnly }]) => type.placeholder !== undefined && !isVariableOnly,
  );
  const flag = fc.constantFrom(...flagsWithValue.map(([name]) => name));
  const value = fc.string().filter((value) => !value.startsWith("--"));
  const part = fc.oneof(
    fc.record({ positional: fc.stringMatching(/^[a-z0-9]+$/) }),
    fc.record({ flag, value, inline: fc.boolean() }),
  );
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const flags: Record<string, string[]> = {};
      const positionals: string[] = [];
      const argv: string[] = [];
      for (const part of parts) {
        if ("positional" in part) {
          positionals.push(part.positional);
          argv.push(part.positional);
        } else {
          (flags[part.flag] ??= []).push(part.value);
          argv.push(...(part.inline ? [`--${part.flag}=${part.value}`] : [`--${part.flag}`, part.value]));
        }
      }
      expect<object>(parse(...argv)).toEqual({ ...NOTHING, positionals, flags });
    }),
  );
});
