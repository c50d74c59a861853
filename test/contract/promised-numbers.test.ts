import { describe, expect, jest, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GENERATED_NUMBERS, PROMISED_NUMBERS, type PromisedNumber } from "./promised-numbers.ts";

/*
 * Every number of these pages is promised: it is in the table, with the constant that keeps it and the test that fails
 * if it does not.
 */

const ROOT = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

const BLOCK = /<!-- ([a-z-]+) -->[^]*?<!-- \/\1 -->/g;

/** The text of a page without markup, programs, and the blocks that are made of the code. */
function proseOf(page: string): string {
  const prose = read(`docs/${page}`)
    .replace(/<!-- (\S+) -->[^]*?<!-- \/\1 -->/g, "")
    .replace(/```[^]*?```/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return prose.replace(/[`*_]/g, "").replace(/\s+/g, " ");
}

/** Numbers that name something: responses, sizes of networks, hashes, versions and values of flags. */
const NAMES = /\b[45]\d\d\b|\b[45]xx\b|\/\d+|SHA-256|\/v1|--\w+ \d|\(\d{3}\)|\d{4}-\d\d-\d\d/g;
const WORDS = "a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve";
const UNITS = "seconds?|minutes?|hours?|days?|years?|KiB|kB|bytes|times|workers|connections";
const NUMBER = new RegExp(`\\b(?:\\d[\\d,.]*\\d|\\d)(?: \\w+)?|\\b(?:${WORDS}) (?:${UNITS})\\b(?! one)`, "g");

/** The numbers of a text that no promise has. */
function unknownIn(text: string, promises: readonly PromisedNumber[]): string[] {
  const rest = promises.reduce((left, promise) => left.replace(promise.text, " … "), text);
  return [...rest.replace(NAMES, " ").matchAll(NUMBER)].map(
    ({ 0: number, index }) =>
      `${number}: …${rest.replace(NAMES, " ").slice(Math.max(0, index - 40), index + 40)}…`,
  );
}

/** The named test is in the file. */
function expectTest([file, name]: readonly [file: string, test: string]): void {
  expect(`${file}: ${read(file).includes(name) ? name : "no such test"}`).toBe(`${file}: ${name}`);
}

describe.each(Object.entries(PROMISED_NUMBERS))("docs/%s", (page, promises) => {
  const prose = proseOf(page);

  test("every number is in the table of promises", () => {
    expect(unknownIn(prose, promises)).toEqual([]);
    // A number that nobody knows is found.
    expect(unknownIn(`${prose} It takes 7 s.`, promises)).toHaveLength(1);
  });

  test("every block that is made of the code has a test of its numbers", () => {
    const blocks = [...read(`docs/${page}`).matchAll(BLOCK)].map(([, name = ""]) => name);
    expect(blocks.filter((name) => GENERATED_NUMBERS[name] === undefined)).toEqual([]);
    for (const name of blocks) expectTest(GENERATED_NUMBERS[name] ?? expect.unreachable());
  });

  test.each(promises.map((promise) => [promise.text, promise] as const))(
    "%s",
    async (text, { kept, proof }) => {
      expect(prose).toContain(text);
      const lost = Object.entries(kept).filter(([file, code]) => !read(`src/${file}`).includes(code));
      expect(lost).toEqual([]);
      if (typeof proof !== "function") return expectTest(proof);
      jest.useFakeTimers();
      try {
        await proof();
      } finally {
        jest.useRealTimers();
      }
    },
  );
});
