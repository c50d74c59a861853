import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseArguments } from "../../src/cli/arguments.ts";
import { editDistance, nearest } from "../../src/cli/nearest.ts";
import { OPTIONS } from "../../src/config.ts";

const parse = (...argv: string[]) => parseArguments(argv, OPTIONS);
const problem = (...argv: string[]) => parse(...argv).problem?.(OPTIONS).message;

describe("a command line", () => {
  test("a flag takes its value after a space or an equals sign", () => {
    const given = { port: ["9000"], data: ["/srv"] };
    expect(parse("serve", "--port", "9000", "--data=/srv")).toMatchObject({ words: ["serve"], given });
    expect(parse("--port=9000", "serve", "--data", "/srv")).toMatchObject({ words: ["serve"], given });
  });

  test("only the first equals sign divides, and a value may be empty", () => {
    expect(parse("--name=a=b").given).toEqual({ name: ["a=b"] });
    expect(parse("--name=").given).toEqual({ name: [""] });
    expect(parse("--name", "").given).toEqual({ name: [""] });
  });

  test("a repeated flag keeps every value in order", () => {
    expect(parse("--trust-proxy", "a", "--trust-proxy=b").given).toEqual({ "trust-proxy": ["a", "b"] });
  });

  test("a switch takes no value", () => {
    expect(parse("keys", "list", "--json", "3")).toMatchObject({
      words: ["keys", "list", "3"],
      given: { json: ["true"] },
    });
    expect(problem("--json=no")).toBe('--json is a switch and takes no value, but got "no"');
  });

  test("a value may begin with one dash, with two only behind an equals sign", () => {
    expect(parse("--port", "-1").given).toEqual({ port: ["-1"] });
    expect(problem("--name", "--plan", "free")).toStartWith("--name needs a value: ");
    expect(parse("--name=--plan").given).toEqual({ name: ["--plan"] });
  });

  test("behind two dashes everything is a word", () => {
    expect(parse("keys", "--", "--port", "-h")).toMatchObject({
      words: ["keys", "--port", "-h"],
      help: false,
    });
  });

  test("help and version are seen anywhere", () => {
    expect(parse("serve", "--port", "1", "-h").help).toBeTrue();
    expect(parse("--help", "--nonsense").help).toBeTrue();
    expect(parse("-v").version).toBeTrue();
  });

  test.each([
    ["--prot", "--port"],
    ["--PORT", "--port"],
    ["--per_minute", "--per-minute"],
    ["-port", "--port"],
    ["--truts-proxy=x", "--trust-proxy"],
    ["--nmae", "--name"],
  ])("%s is unknown, and %s is proposed", (typed, meant) => {
    expect(problem(typed)).toEndWith(`; did you mean ${meant}?`);
  });

  test.each(["--frobnicate", "-x", "--__proto__", "--toString", "---"])("%s is unknown", (typed) => {
    expect(problem(typed)).toBe(`unknown flag "${typed}"; see --help`);
  });

  test("the first thing wrong is the one that is told", () => {
    expect(problem("--nmae", "x", "--port")).toContain("--nmae");
    expect(problem("--port", "--nmae")).toContain("--port needs");
  });

  test("however flags are written and wherever they stand, the same is understood", () => {
    const flag = fc.constantFrom(...Object.keys(OPTIONS).filter((flag) => flag !== "json"));
    const value = fc.string().filter((value) => !value.startsWith("--"));
    const part = fc.oneof(
      fc.record({ word: fc.stringMatching(/^[a-z0-9]+$/) }),
      fc.record({ flag, value, inline: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const given: Record<string, string[]> = {};
        const words: string[] = [];
        const argv: string[] = [];
        for (const part of parts) {
          if ("word" in part) {
            words.push(part.word);
            argv.push(part.word);
          } else {
            (given[part.flag] ??= []).push(part.value);
            argv.push(...(part.inline ? [`--${part.flag}=${part.value}`] : [`--${part.flag}`, part.value]));
          }
        }
        expect(parse(...argv)).toEqual({ words, given, help: false, version: false });
      }),
    );
  });
});

describe("typing errors", () => {
  test("a swap, a lost, an added and a wrong letter count one each", () => {
    expect(["prot", "por", "porrt", "pert"].map((typed) => editDistance(typed, "port"))).toEqual([
      1, 1, 1, 1,
    ]);
    expect(editDistance("", "port")).toBe(4);
  });

  test("the distance is the same both ways, and zero only for the same word", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b) === 0).toBe(a === b);
        expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });

  test("the closest is proposed, and nothing that is far", () => {
    expect(nearest("serv", ["openapi", "serve"])).toBe("serve");
    expect(nearest("frobnicate", ["openapi", "serve"])).toBeUndefined();
    expect(nearest("x", ["openapi", "serve"])).toBeUndefined();
  });
});
