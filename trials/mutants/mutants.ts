/* Runs `npm run mutants`; its --help describes the options. */

import { Glob } from "bun";
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "../harness/child.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, isGiven, runCommand, text } from "../harness/command-line.ts";
import { killTree } from "../harness/processes.ts";
import { Random } from "../harness/random.ts";
import { type Mutation, mutationsOf } from "./mutations.ts";
import { TestChoice } from "./test-choice.ts";

const ROOT = join(import.meta.dir, "../..");
const MAX_SEED = 2 ** 31;
const LEAST_PERCENT = 85;

const HELP = `Usage: npm run mutants [-- OPTIONS]

Changes one line of src at a time, at random, and runs the tests: an operator, a number, a condition or a statement. Every
line that can be changed has the same chance; texts and styles stay. Of the tests that run the file, those near it are
first, then the quick ones, then ten with databases, or for a page those that open it in a browser, then the others of
npm test, until one fails. A test that fails without the change, too, does not count. Prints each change that no test
notices, a survivor. Works on copies of this directory. Exits with 1 if less than ${LEAST_PERCENT} % of the changes are noticed.

  --seed N         Repeat the changes of an earlier run (default: by chance, printed)
  --count N        Number of changes (default: 100)
  --of PREFIX      Only files whose path begins so, such as src/domain/
  --since REVISION Only files that have changed since a revision of git, if there are any
  --near           Only the tests that are near: faster, and with more survivors
  --jobs N         Changes that are tried at the same time (default: 1)
  --minutes N      Begin no change after this time (default: 60)
  --help           Show this
`;

interface Mutant extends Mutation {
  readonly file: string;
}

const nameOf = ({ file, line, before, after }: Mutant) =>
  `${file}:${line + 1}\n    - ${before.trim()}\n    + ${after.trim() || "(removed)"}`;

function filesOf(prefix: string, since: string | undefined): string[] {
  const files = [...new Glob("src/**/*.{ts,tsx}").scanSync(ROOT)].filter((file) => !file.endsWith(".d.ts"));
  const git = ["git", "diff", "--name-only", since ?? "", "--", "src"];
  const changed =
    since === undefined ? files : Bun.spawnSync(git, { cwd: ROOT }).stdout.toString().split("\n");
  const chosen = files.filter((file) => file.startsWith(prefix)).toSorted();
  const both = chosen.filter((file) => changed.includes(file));
  return both.length > 0 ? both : chosen;
}

/** The changes in random order. */
function* drawnFrom(files: readonly string[], random: Random): Generator<Mutant> {
  const left = files.flatMap((file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    return mutationsOf(text, random).map((mutation) => Object.assign({ file }, mutation));
  });
  while (left.length > 0) yield* left.splice(random.below(left.length), 1);
}

/** Programs that run for longer have stopped to make progress: nothing else takes a third of it. */
const NEAR_LIMIT_MS = 300_000;
const LIMIT_MS = 900_000;

interface TestRun {
  readonly hasFailed: boolean;
  /** Those that have failed; empty if the run as a whole has. */
  readonly failedFiles: readonly string[];
}

/** A copy of the project in which lines are changed. */
class Copy {
  readonly #directory = temporaryDirectory("mutants");

  constructor() {
    for (const name of readdirSync(ROOT))
      if (name !== "node_modules" && name !== ".git")
        cpSync(join(ROOT, name), join(this.#directory, name), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(this.#directory, "node_modules"));
  }

  /** Runs `work` while the line is changed. */
  async with<T>({ file, line, after }: Mutant, work: () => Promise<T>): Promise<T> {
    const path = join(this.#directory, file);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.split("\n").with(line, after).join("\n"));
    return work().finally(() => writeFileSync(path, text));
  }

  async test(files: readonly string[], limitMs: number): Promise<TestRun> {
    let file = "";
    const failed = new Set<string>();
    const command = ["scripts/test.ts", "--all", "--bail", ...files];
    const child = new Child([process.execPath, ...command], {
      cwd: this.#directory,
      onLine(line) {
        if (/^test\/\S+\.test\.ts:$/.test(line)) file = line.slice(0, -1);
        if (line.startsWith("(fail)") || line === "# Unhandled error between tests") failed.add(file);
      },
    });
    const timer = setTimeout(() => void killTree(child.pid), limitMs);
    const code = await child.ended;
    clearTimeout(timer);
    return { hasFailed: code !== 0, failedFiles: [...failed] };
  }

  async hasTypes(): Promise<boolean> {
    return (await new Child(["npm", "run", "-s", "check"], { cwd: this.#directory }).ended) === 0;
  }
}

type Fate = "noticed" | "noticed by types" | "survived";

async function fateOf(mutant: Mutant, copy: Copy, groups: readonly (readonly string[])[]): Promise<Fate> {
  for (const [i, group] of groups.entries()) {
    const limitMs = i < 2 ? NEAR_LIMIT_MS : LIMIT_MS;
    let files = group;
    while (files.length > 0) {
      const { hasFailed, failedFiles } = await copy.with(mutant, () => copy.test(files, limitMs));
      if (!hasFailed) break;
      const suspects = failedFiles.length > 0 ? failedFiles : files;
      if (!(await copy.test(suspects, limitMs)).hasFailed) return "noticed";
      // They fail without the change, too.
      files = files.filter((file) => !suspects.includes(file));
    }
  }
  return (await copy.with(mutant, () => copy.hasTypes())) ? "survived" : "noticed by types";
}

await runCommand({
  name: "mutants",
  help: HELP,
  flags: {
    seed: integer(1 + Math.floor(Math.random() * MAX_SEED), MAX_SEED),
    count: integer(100, 10_000),
    of: text,
    since: text,
    near: isGiven,
    jobs: integer(1, 16),
    minutes: integer(60, 24 * 60),
  },
  async main({ seed, count, of = "src/", since, near, jobs, minutes }) {
    process.stdout.write(`seed ${seed}\n`);
    const end = performance.now() + minutes * 60_000;
    const drawn = drawnFrom(filesOf(of, since), new Random(seed)).take(count);
    const choice = new TestChoice(ROOT);
    const fates = new Map<Fate, number>();
    await Promise.all(
      Array.from({ length: jobs }, async () => {
        const copy = new Copy();
        while (performance.now() < end) {
          const { value: mutant } = drawn.next();
          if (mutant === undefined) return;
          const groups = choice.of(mutant.file);
          const fate = await fateOf(mutant, copy, near ? groups.slice(0, 2) : groups);
          fates.set(fate, (fates.get(fate) ?? 0) + 1);
          process.stdout.write(`${fate}: ${nameOf(mutant)}\n`);
        }
      }),
    );
    const tried = [...fates.values()].reduce((sum, each) => sum + each, 0);
    const survived = fates.get("survived") ?? 0;
    const percent = tried === 0 ? 100 : Math.floor((100 * (tried - survived)) / tried);
    const byTypes = fates.get("noticed by types") ?? 0;
    process.stdout.write(
      `${tried - survived} of ${tried} changes are noticed (${percent} %), ${byTypes} of them by types alone; ${survived} survive\n`,
    );
    return percent < LEAST_PERCENT ? 1 : 0;
  },
});
