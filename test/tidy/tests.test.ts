import { describe, expect, test } from "bun:test";
import { allImports, code, linesWhere, read } from "./source.ts";

/** A file, and those that import it, themselves or through others. */
function importersOf(path: string): ReadonlySet<string> {
  const importers = new Set([path]);
  for (const file of importers)
    for (const { from, of } of allImports) if (of === file && !from.startsWith("src/")) importers.add(from);
  return importers;
}

test("no test outside engines, browser and system needs a program", () => {
  const needy = [...importersOf("trials/harness/programs.ts")].filter((file) =>
    /^test\/.*\.test\.ts$/.test(file),
  );
  expect(needy).not.toBeEmpty();
  expect(needy.filter((file) => !/^test\/(?:engines|browser|system)\//.test(file))).toEqual([]);
});

test("npm run test:all installs each program that a test names", () => {
  const tests = code.filter(({ path }) => path.startsWith("test/"));
  const runner = read("scripts/test.ts").text;
  /** The programs of an array in the runner, with those of the arrays that it spreads. */
  const programsAt = (before: string): readonly string[] => {
    const [, items = ""] = new RegExp(`\\b${before} \\[([^\\]]*)\\]`).exec(runner) ?? [];
    return items
      .split(/[\s,]+/)
      .flatMap((item) =>
        item.startsWith("...") ? programsAt(`${item.slice(3)} =`) : item.replace("P.", ""),
      );
  };
  const missing = tests.flatMap(({ path, text }) => {
    const [, names = ""] = /import \{([^}]*)\} from "\.[./\w]*\/programs\.ts"/.exec(text) ?? [];
    const used = names.match(/\b[A-Z_]{2,}\b/g) ?? [];
    return [...importersOf(path)].flatMap((test) => {
      const group = /^test\/(\w+)\/.*\.test\.ts$/.exec(test)?.[1];
      const installed = group === undefined ? used : programsAt(`${group}:`);
      return used.filter((name) => !installed.includes(name)).map((name) => `${test}: ${name}`);
    });
  });
  expect(programsAt("system:")).toContain("POSTGRES");
  expect(missing).toEqual([]);
});

test("what needs no engine and no browser is not among the tests with them", () => {
  const importers = importersOf("trials/harness/programs.ts");
  const tests = code.flatMap(({ path }) =>
    /^test\/(?:engines|browser)\/.*\.test\.ts$/.test(path) ? path : [],
  );
  expect(tests).not.toBeEmpty();
  expect(tests.filter((path) => !importers.has(path))).toEqual([]);
});

describe("tests", () => {
  const tests = code.filter(({ path }) => path.startsWith("test/") && path !== "test/timing.ts");

  test("nothing is awaited for as long as the runner allows: `until` takes a bound", () => {
    const sleep = "Bun\\.sleep\\(";
    const inLine = new RegExp(`\\bwhile \\(.*\\) await ${sleep}|\\bfor \\(;.*\\) await ${sleep}`);
    expect(linesWhere(tests, (line) => inLine.test(line))).toEqual([]);
    expect(inLine.test(`while (!isDone()) await ${"Bun"}.sleep(5);`)).toBeTrue();
    // What throws has a bound.
    const loop = /^( *)for \(;;\) \{\n((?:\1 .*\n|\n)*)/gm;
    const endless = tests.flatMap(({ path, text }) =>
      [...text.matchAll(loop)].flatMap(([whole, , body = ""]) =>
        new RegExp(sleep).test(body) && !body.includes("throw new") ? `${path}: ${whole}` : [],
      ),
    );
    expect(endless).toEqual([]);
  });

  test("no limit is shorter than the runner's, which a busy machine needs", () => {
    const short = /^\}, (?:[1-5]?\d_000|\d{1,3})\);$/;
    const inTests = tests.filter(({ path }) => path.endsWith(".test.ts"));
    expect(linesWhere(inTests, (line) => short.test(line))).toEqual([]);
  });

  test("a service that runs for a whole file is never under fake timers, which its own are lost in", () => {
    const runsThroughout = /\bawait use\w*Service\(/;
    const faults = tests.filter(({ text }) => runsThroughout.test(text) && /\buseFakeTimers\(/.test(text));
    expect(faults.map(({ path }) => path)).toEqual([]);
    expect(tests.some(({ text }) => runsThroughout.test(text))).toBeTrue();
  });
});
