/* Which tests can notice a change of a file. */

import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const IMPORT = /\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/** How many test files are nearest, and how many are near. */
const NEAREST = 3;
const NEAR = 12;
/** How many test files with programs are run: they are slow. */
const MOST_WITH_PROGRAMS = 10;

/** Three quarters of the test files take less than this, and together a sixth of the time of all. */
const QUICK_MS = 3_500;

const isProgramTest = (path: string) => /^test\/(?:engines|browser|system)\//.test(path);

/** The files whose promises a browser shows. Databases show those of the others. */
const OF_BROWSERS = /^src\/(?:console|pages|docs-site\/browser)\//;

/** The test files of a directory, and the modules that each of them imports. */
export class TestChoice {
  readonly #tests: readonly string[];
  /** How long each test file takes, in milliseconds. */
  readonly #timings: Readonly<Record<string, number>>;
  readonly #importers = new Map<string, string[]>();

  constructor(root: string) {
    this.#timings = JSON.parse(readFileSync(join(root, "test/timings.json"), "utf8")).files;
    const files = [...new Glob("{src,test,trials,bench,scripts}/**/*.{ts,tsx}").scanSync(root)];
    for (const from of files) {
      for (const [, name = ""] of readFileSync(join(root, from), "utf8").matchAll(IMPORT)) {
        const of = join(dirname(from), name);
        this.#importers.set(of, [...(this.#importers.get(of) ?? []), from]);
      }
    }
    this.#tests = files.filter((file) => /^test\/.*\.test\.ts$/.test(file)).toSorted();
  }

  /** Groups of tests, in the order in which they are run: those near the file, then the others, quick ones first. */
  of(source: string): readonly (readonly string[])[] {
    const distances = this.#distancesTo(source);
    const rank = (path: string) =>
      (distances.get(path) ?? 100) -
      3 * Number(basename(path).includes(basename(source).replace(/\.tsx?$/, "")));
    const byRank = this.#tests.toSorted((a, b) => rank(a) - rank(b));
    const plain = byRank.filter((path) => !isProgramTest(path));
    const group = OF_BROWSERS.test(source) ? "test/browser/" : "test/engines/";
    const withPrograms = byRank.filter((path) => path.startsWith(group)).slice(0, MOST_WITH_PROGRAMS);
    const isQuick = (path: string) => (this.#timings[path] ?? 0) < QUICK_MS;
    const far = plain.slice(NEAR);
    return [
      plain.slice(0, NEAREST),
      plain.slice(NEAREST, NEAR),
      far.filter(isQuick),
      withPrograms,
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
