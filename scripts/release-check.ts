/**
 * The release checklist: `npm run release-check`. It prints each point with its result, and fails if one of them does.
 * Points that take minutes, or that only a person can judge, are printed at the end.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { buildExecutable, currentCommit } from "./build.ts";

const ROOT = resolve(import.meta.dir, "..");
const { version, releaseDate } = packageJson;

/** Undefined if the point is met, and otherwise what is wrong. */
type Problem = string | undefined;

interface Point {
  readonly text: string;
  check(): Problem | Promise<Problem>;
}

function run(...command: string[]): { readonly code: number; readonly output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: ROOT, stderr: "pipe" });
  return { code: exitCode, output: `${stdout}${stderr}`.trim() };
}

/** The last lines of what a command prints, if it fails. */
function failureOf(...command: string[]): Problem {
  const { code, output } = run(...command);
  return code === 0 ? undefined : output.split("\n").slice(-5).join("\n");
}

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

const executable = join(ROOT, "dist/petstore");

const TESTS = ["test/release.test.ts", "test/docs.test.ts", "test/tidy.test.ts"];

const POINTS: readonly Point[] = [
  {
    text: "the working tree has no changes",
    check: () => run("git", "status", "--porcelain").output || undefined,
  },
  {
    text: `CHANGELOG.md begins with ${version}, dated ${releaseDate}`,
    check() {
      const [first = "nothing"] = /^## .*$/m.exec(read("CHANGELOG.md")) ?? [];
      return first === `## ${version} (${releaseDate})` ? undefined : `it begins with: ${first}`;
    },
  },
  {
    text: `the tag v${version} does not exist, or is this commit`,
    check() {
      const tag = run("git", "rev-parse", "--quiet", "--verify", `v${version}^{commit}`);
      const head = run("git", "rev-parse", "HEAD").output;
      return tag.code !== 0 || tag.output === head ? undefined : `it is ${tag.output}`;
    },
  },
  { text: "the types are right", check: () => failureOf("npm", "run", "-s", "check") },
  { text: "the code is formatted", check: () => failureOf(process.execPath, "fmt", "--check") },
  { text: "the linter finds nothing", check: () => failureOf("npm", "run", "-s", "lint") },
  {
    text: `every file that names the version names ${version}, and the documentation is generated from this code`,
    check: () => failureOf(process.execPath, "test", ...TESTS),
  },
  {
    text: "the Kubernetes manifests are valid",
    check: () => failureOf("npm", "run", "-s", "check:deploy"),
  },
  {
    text: "the executable can be built, and names this version and commit",
    async check() {
      await buildExecutable({ outfile: executable, commit: currentCommit() });
      const { output } = run(executable, "--version");
      const expected = `petstore ${version} (commit ${currentCommit()}, Bun ${Bun.version})`;
      return output === expected ? undefined : output;
    },
  },
];

const BY_HAND = [
  ".ci/run passes in a clean clone",
  "the measurements in docs/performance.md and the results.md of bench/, trials/faults/ and trials/attacks/ are of this release:",
  "  npm run bench -- --full --check, npm run faults, npm run attacks, npm run fuzz",
  "the changelog says what clients and operators notice, and docs/upgrading.md what they have to do",
  `git tag --sign v${version} && git push --tags, then publish dist/petstore with its sha256sum`,
  "after the release: docs/generate.ts gets the release (EARLIER_RELEASES), test/engines/upgrade its commit and new fixtures",
];

let failed = 0;
for (const { text, check } of POINTS) {
  const problem = await check();
  if (problem !== undefined) failed++;
  process.stdout.write(`${problem === undefined ? "ok    " : "FAILED"}  ${text}\n`);
  if (problem !== undefined) process.stdout.write(`${problem.replaceAll(/^/gm, "          ")}\n`);
}
process.stdout.write(`\nBy hand:\n${BY_HAND.map((line) => `  ${line}\n`).join("")}`);
process.exit(failed === 0 ? 0 : 1);
