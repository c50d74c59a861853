/*
 * The release checklist: `npm run release-check`. It prints each point with its result, and fails if one of them fails.
 * Points that take minutes, or that only a person can judge, are printed at the end.
 */

import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { runCommand } from "../trials/harness/command-line.ts";
import { runTrials } from "../trials/harness/trials.ts";
import { clientReleaseFile } from "../src/browser-bundle/bundle.ts";
import { currentCommit } from "./build.ts";
import { ALL_PLATFORMS, PACKAGE_FILES, type Platform, processorOf } from "./packages.ts";
import {
  makeBillOfMaterials,
  makeChecksums,
  makeClientPackage,
  makeExecutables,
  makeNotes,
  makePackages,
  RELEASE_FILES,
} from "./release.ts";

const ROOT = resolve(import.meta.dir, "..");
const { version, releaseDate } = packageJson;

/** The problem of a point; undefined if it is met. */
type Problem = string | undefined;

interface Point {
  readonly title: string;
  check(): Problem | Promise<Problem>;
}

function run(...command: string[]): { readonly code: number; readonly output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: ROOT, stderr: "pipe" });
  return { code: exitCode, output: `${stdout}${stderr}`.trim() };
}

/** The last lines of a command's output, if it fails. */
function failureOf(...command: string[]): Problem {
  const { code, output } = run(...command);
  return code === 0 ? undefined : output.split("\n").slice(-5).join("\n");
}

const directory = temporaryDirectory("release");

const TESTS = ["test/release.test.ts", "test/docs.test.ts", "test/tidy/"];

const POINTS: readonly Point[] = [
  {
    title: "the working tree has no changes",
    check: () => run("git", "status", "--porcelain").output || undefined,
  },
  {
    title: `CHANGELOG.md begins with ${version}, dated ${releaseDate}`,
    check() {
      const changelog = readFileSync(join(ROOT, "CHANGELOG.md"), "utf8");
      const [first = "nothing"] = /^## .*$/m.exec(changelog) ?? [];
      return first === `## ${version} (${releaseDate})` ? undefined : `it begins with: ${first}`;
    },
  },
  {
    title: `the tag v${version} does not exist, or is this commit`,
    check() {
      const tag = run("git", "rev-parse", "--quiet", "--verify", `v${version}^{commit}`);
      const head = run("git", "rev-parse", "HEAD").output;
      return tag.code !== 0 || tag.output === head ? undefined : `it is ${tag.output}`;
    },
  },
  { title: "the types are right", check: () => failureOf("npm", "run", "-s", "check") },
  { title: "the code is formatted", check: () => failureOf(process.execPath, "fmt", "--check") },
  { title: "the linter finds nothing", check: () => failureOf("npm", "run", "-s", "lint") },
  {
    title: `every file that names the version names ${version}, and the documentation is generated from this code`,
    check: () => failureOf(process.execPath, "test", ...TESTS),
  },
  {
    title: "the Kubernetes manifests are valid",
    check: () => failureOf("npm", "run", "-s", "check:deploy"),
  },
  {
    title: "the executables can be built, each for its processor, and name this version and commit",
    async check() {
      await makeExecutables(directory);
      const fileOf = (platform: Platform) => join(directory, RELEASE_FILES.executable(platform));
      const wrong = ALL_PLATFORMS.filter((platform) => processorOf(fileOf(platform)) !== platform);
      if (wrong.length > 0) return `those of ${wrong.join(", ")} are for another processor`;
      // Only its own executable runs on this machine.
      const own = ALL_PLATFORMS.find((platform) => platform === process.arch);
      const { output } = run(own === undefined ? "uname" : fileOf(own), "--version");
      const expected = `petstore ${version} (commit ${currentCommit()}, Bun ${Bun.version})`;
      return output === expected ? undefined : output;
    },
  },
  {
    title: "the packages for Debian and Red Hat can be made, and contain these executables",
    check() {
      makePackages(directory);
      for (const platform of ALL_PLATFORMS) {
        const [deb, rpm] = [PACKAGE_FILES.debian(platform), PACKAGE_FILES.redHat(platform)];
        const executable = RELEASE_FILES.executable(platform);
        const problem =
          failureOf(
            "sh",
            "-c",
            `cd "${directory}" && dpkg-deb --fsys-tarfile ${deb} | tar -xO ./usr/bin/petstore | cmp - ${executable}`,
          ) ??
          failureOf(
            "sh",
            "-c",
            `cd "${directory}" && rpm2archive --nocompression - < ${rpm} | tar -xO ./usr/bin/petstore | cmp - ${executable}`,
          );
        if (problem !== undefined) return problem;
      }
      return failureOf("npm", "run", "-s", "test:all", "--", "test/system/deploy/packages.test.ts");
    },
  },
  {
    title: "the image can be built on a stand-in for its base, and serves",
    check: () => failureOf("npm", "run", "-s", "test:all", "--", "test/system/deploy/container.test.ts"),
  },
  {
    title: "the client package is of this version",
    async check() {
      await makeClientPackage(directory);
      const { output } = run("tar", "-xzOf", join(directory, RELEASE_FILES.client), "package/package.json");
      const found: { version?: string } = JSON.parse(output);
      return found.version === version ? undefined : `it is of ${found.version}`;
    },
  },
  {
    title: `the client package of ${version} is kept, which later releases serve, too`,
    check() {
      const made = join(directory, RELEASE_FILES.client);
      const kept = clientReleaseFile(version);
      if (existsSync(kept)) return failureOf("cmp", made, kept);
      copyFileSync(made, kept);
      return `commit ${relative(ROOT, kept)}, which this command has written`;
    },
  },
  {
    title: "the bill of materials names every package that the executable contains",
    check() {
      makeBillOfMaterials(directory);
      const bom = JSON.parse(readFileSync(join(directory, RELEASE_FILES.bom), "utf8"));
      const names = new Set<string>(bom.components.map(({ name }: { name: string }) => name));
      const missing = Object.keys(packageJson.dependencies).filter((name) => !names.has(name));
      return missing.length === 0 ? undefined : `it lacks ${missing.join(", ")}`;
    },
  },
  {
    title: "the release notes are the changelog's, and the checksums are right",
    check() {
      makeNotes(directory);
      makeChecksums(directory);
      return failureOf("sh", "-c", `cd "${directory}" && sha256sum --check --strict --quiet SHA256SUMS`);
    },
  },
];

const BY_HAND = [
  ".ci/run passes in a clean clone",
  "the measurements in docs/performance.md and the results.md of bench/, trials/faults/ and trials/attacks/ are of this release:",
  "  npm run bench -- --full --check, npm run faults, npm run attacks, npm run fuzz",
  "the changelog says what clients and operators notice, and docs/upgrading.md what they have to do",
  `git tag --sign v${version} && git push --tags: the workflow Release makes the files (npm run release), attests and publishes them`,
  "after the release: NEXT_STEPS in src/store/sql/migration-steps.ts move to released-steps.ts, and get the name of the release to come, test/store/migrations.test.ts gets their digest, test/engines/upgrade its commit and new fixtures, test/contract/releases its OpenAPI document",
];

await runCommand({
  name: "release-check",
  async main() {
    const exitCode = await runTrials({
      trials: POINTS,
      run: async ({ check }) => ({ problems: [(await check()) ?? []].flat(), note: "ok" }),
    });
    process.stdout.write(`\nBy hand:\n${BY_HAND.map((line) => `  ${line}\n`).join("")}`);
    return exitCode;
  },
});
