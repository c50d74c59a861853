import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { withoutStrings } from "../../trials/harness/project-files.ts";
import {
  type File,
  ROOT,
  all,
  code,
  linesWhere,
  pages,
  paths,
  read,
  source,
  withoutComments,
} from "./source.ts";

const MAX_LINES = 500;
/** A cell of this length takes two lines on a page of the documentation. */
const MAX_CELL = 120;

describe("style", () => {
  test(`no file in src has more than ${MAX_LINES} lines, but for what nobody edits`, () => {
    const styles = paths.filter((path) => /^src\/.*\.css$/.test(path)).map(read);
    expect(styles).not.toBeEmpty();
    const long = [...source, ...styles].filter(
      ({ path, text }) => text.split("\n").length - 1 > MAX_LINES && !path.endsWith("/released-steps.ts"),
    );
    expect(long.map(({ path }) => path)).toEqual([]);
  });

  test("a doc comment precedes what it describes; the header of a file is a plain comment, /* … */", () => {
    const alone = /^ *\/\*\*(?:(?!\*\/)[^])*\*\/\n(?:\n|import | *\/\*\*)/m;
    expect(code.filter(({ text }) => alone.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test("a comment is a sentence about its subject: 'The length of the body', not 'Of the body'", () => {
    // Lines after the first one of a comment in lines are not the beginning of one.
    const opening = /(?<!\/\/ .*\n\s*)(?:\/\*\*?|\/\/)\s(?:\s*\* )?(\S.*)/g;
    const sentences = code.flatMap(({ path, text }) =>
      [...text.matchAll(opening)].map(([, line = ""]) => ({
        path,
        sentence: line.replace(/(?<=[.:;])\s.*| \*\/.*/, ""),
      })),
    );
    const isFragment = (sentence: string) =>
      /^Of\b/.test(sentence) ||
      /^(?:As|Like)\b(?! (?:soon|long|far|if))[^,]*\.$/.test(sentence) ||
      // A word that ends in s may be the verb.
      /^(?:At|By|For|From|In|On|To|Until|With|Without)\b(?!.*(?:s|may|must|can|have|are|do)\b)[^,]*\.$/.test(
        sentence,
      );
    expect(sentences.filter(({ sentence }) => isFragment(sentence))).toEqual([]);
    expect(sentences.length).toBeGreaterThan(1_000);
    expect(["Of the body", "As `run`.", "Without a reload."].every(isFragment)).toBeTrue();
  });

  test("no type is any", () => {
    const isAny = /(?::|<|\bas|=>|\||,)\s*any\b(?!\.|\()|\bany\[\]/;
    const bare = source.map(({ path, text }) => ({ path, text: withoutStrings(withoutComments(text)) }));
    expect(linesWhere(bare, (line) => isAny.test(line))).toEqual([]);
  });

  test("nothing is left to do later", () => {
    const mark = /\b(?:TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b/;
    expect(linesWhere([...code, ...pages], (line) => mark.test(line))).toEqual([]);
  });

  test("no test is skipped, singled out or promised", () => {
    const skipped = /\b(?:test|it|describe)\.(?:skip|only|todo|skipIf|todoIf|failing)\b/;
    expect(linesWhere(code, (line) => skipped.test(line))).toEqual([]);
  });

  test("nothing names a place on somebody's machine", () => {
    const place = /(?:^|[\s"'`(=])\/(?:work|root|home|tmp|Users)\/\w/;
    expect(linesWhere([...code, ...pages], (line) => place.test(line))).toEqual([]);
  });
});

const anchorsOf = ({ text }: File) =>
  [...Bun.markdown.html(text, { headings: { ids: true } }).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);

describe("documents", () => {
  const links = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => ({ path, target })),
  );

  test("every link within the project leads somewhere", () => {
    const broken = links.filter(({ path, target }) => {
      if (/^(?:[a-z]+:|\/)/.test(target)) return false;
      const [file = "", anchor] = target.split("#");
      const at = file === "" ? path : relative(ROOT, resolve(ROOT, dirname(path), file));
      if (!existsSync(join(ROOT, at))) return true;
      return anchor !== undefined && at.endsWith(".md") && !anchorsOf(read(at)).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  test.each([
    ["unban", /\bpardon(?!ed_at)|\blift(?:s|ed|ing)? (?:a|the|its) ban/i],
    ["rotate", /\broll(?:s|ed|ing)? (?:a|an|the|its) (?:key|secret|token)/i],
    ["reject", /\brefus(?:es?|al)\b(?! ?[=(])/i],
    ["report, announce or distinguish", /\b(?:tells?|told|telling)\b/i],
    ["a 401 response", /\bresponses \d{3}\b/],
    ["pet", /\banimals?\b/i],
    // The field `instance` of the admin API and `service.instance.id` of OTLP are published.
    ["server", /(?<![a-z.])instances?(?![a-z:])/i],
  ])("the word is %s", (_, others) => {
    // Migrations keep theirs, and so does what explains them.
    const texts = [...source, ...pages].filter(
      ({ path }) => /^(?:src|docs)\/|^README/.test(path) && !/(?:migrations|-steps)\.ts$/.test(path),
    );
    expect(linesWhere(texts, (line) => others.test(line))).toEqual([]);
  });

  test("files that comments of src name exist", () => {
    const missing = source.flatMap(({ path, text }) =>
      [...text.matchAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*$/gm)]
        .flatMap(
          ([comment]) => comment.match(/(?<![\w./-])(?:[\w-]+\/)*[\w-]+\.(?:tsx?|css|lua|md)\b/g) ?? [],
        )
        .filter((name) => !all.some((file) => `/${file}`.endsWith(`/${name}`)))
        .map((name) => `${path}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  test("cells of tables are not padded, and short enough for two lines in docs/", () => {
    const isPadded = (line: string) => /^\|.*(?:\S {2,}\||\| {2,}[^ |]|-{4}).*\|$/.test(line);
    expect(linesWhere(pages, isPadded)).toEqual([]);
    const textOf = (cell: string) => cell.trim().replace(/\]\([^)]*\)|[`[\]*]/g, "");
    const isLong = (line: string) =>
      line.startsWith("|") && line.split(/(?<!\\)\|/).some((cell) => textOf(cell).length > MAX_CELL);
    const docs = pages.filter(({ path }) => path.startsWith("docs/"));
    expect(linesWhere(docs, isLong)).toEqual([]);
  });

  test("docs/dependencies.md has a row for each dependency, and for no other", () => {
    const { dependencies, devDependencies } = JSON.parse(read("package.json").text);
    const rows = [...read("docs/dependencies.md").text.matchAll(/^\| `([^`]+)` +\|/gm)].map(
      ([, name]) => name,
    );
    expect(rows.toSorted()).toEqual(Object.keys({ ...dependencies, ...devDependencies }).toSorted());
  });
});
