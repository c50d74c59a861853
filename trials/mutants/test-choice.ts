/* Which tests can notice a change of a file. */

import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const IMPORT = /\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/** How many test files are nearest, and how many are near. */
const NEAREST = 3;
const NEAR = 12;
/** How many test files with databases are run: they are slow. */
const MOST_WITH_DATABASES = 10;

/** Three quarters of the test files take less than this, and together a sixth of the time of all. */
const QUICK_MS = 3_500;

const isProgramTest = (path: string) => /^test\/(?:engines|browser|system)\//.test(path);

/** The pages that no test imports, and the tests that open them in a browser. */
const OPENED_BY: readonly (readonly [source: RegExp, tests: RegExp])[] = [
  [/^src\/console\//, /^test\/browser\/(?!docs-)/],
  [/^src\/docs-site\/browser\//, /^test\/browser\/(?!console-)/],
  [/^src\/pages\//, /^test\/browser\//],
];

/** Shows something of every page in a minute. */
const SHOWS_ALL = "test/browser/console-recorded.test.ts";

/** What starts the program does not import it. */
const PROGRAM = "src/cli/main.ts";
const STARTS_PROGRAM = ["trials/harness/petstore.ts", "test/cli/cli.ts"];

/** The test files of a directory, and the modules that each of them imports. */
export class TestChoice {
  readonly #tests: readonly string[];
  /** How long each test file takes, in milliseconds. */
  readonly #timings: Readonly<Record<string, number>>;
  readonly #importers = new Map([[PROGRAM, [...STARTS_PROGRAM]]]);

  constructor(root: string) {
    this.#timings = JSON.parse(readFileSync(join(root, "test/timings.json"), "utf8")).files;
    const files = [...new Glob("{src,test,trials,bench,docs,scripts}/**/*.{ts,tsx}").scanSync(root)];
    for (const from of files) {
      for (const [, name = ""] of readFileSync(join(root, from), "utf8").matchAll(IMPORT)) {
        const of = join(dirname(from), name);
        this.#importers.set(of, [...(this.#importers.get(of) ?? []), from]);
      }
    }
    this.#tests = files.filter((file) => /^test\/.*\.test\.ts$/.test(file)).toSorted();
  }

  /**
   * Groups of tests that run the file, in the order in which they are run: those near the file, then the others, quick
   * ones first.
   */
  of(source: string): readonly (readonly string[])[] {
    const distances = this.#distancesTo(source);
    const isOpenedBy = OPENED_BY.find(([pattern]) => pattern.test(source))?.[1];
    const isNamesake = (path: string) => basename(path).includes(basename(source).replace(/\.tsx?$/, ""));
    const rank = (path: string) => (distances.get(path) ?? 0) - 3 * Number(isNamesake(path));
    const isFirst = (path: string) => isNamesake(path) || path === SHOWS_ALL;
    const byRank = this.#tests
      .filter((path) => distances.has(path) || isOpenedBy?.test(path))
      .toSorted((a, b) => rank(a) - rank(b));
    const plain = byRank.filter((path) => !isProgramTest(path));
    const withPrograms = isOpenedBy
      ? byRank.filter((path) => isOpenedBy.test(path))
      : byRank.filter((path) => path.startsWith("test/engines/")).slice(0, MOST_WITH_DATABASES);
    const isQuick = (path: string) => (this.#timings[path] ?? 0) < QUICK_MS;
    const far = plain.slice(NEAR);
    return [
      plain.slice(0, NEAREST),
      plain.slice(NEAREST, NEAR),
      far.filter(isQuick),
      isOpenedBy ? withPrograms.filter(isFirst) : [],
      isOpenedBy ? withPrograms.filter((path) => !isFirst(path)) : withPrograms,
      far.filter((path) => !isQuick(path)),
    ].filter(({ length }) => length > 0);
  }

  #distancesTo(source: string): ReadonlyMap<string, number> {
    const distances = new Map([[source, 0]]);
    for (const [file, distance] of distances)
      for (const importer of this.#importers.get(file) ?? [])
        if (!distances.has(importer)) distances.set(importer, distance + 1);
    return distances;
  }
}
