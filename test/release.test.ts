import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { wrongVersions } from "../scripts/release-check.ts";

const read = (path: string) => readFileSync(join(import.meta.dir, "..", path), "utf8");

test("every file that names the version of the release names that of package.json", () => {
  expect(wrongVersions()).toEqual([]);
});

test("the changelog has the release with its date, and every earlier one", () => {
  const headings = read("CHANGELOG.md").match(/^## .*$/gm) ?? [];
  expect(headings).toContain(`## ${packageJson.version} (${packageJson.releaseDate})`);
  for (const heading of headings)
    expect(heading).toMatch(/^## (?:Unreleased|\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\))$/);
});

test("the lock file names no registry", () => {
  expect(read("package-lock.json")).not.toMatch(/"resolved": "http/);
});

test("a push runs .ci/run; a pull request runs with no privileges", () => {
  const { jobs } = Bun.YAML.parse(read(".github/workflows/ci.yml")) as {
    jobs: Record<string, { container: { options?: string }; steps: { run?: string }[] }>;
  };
  expect(jobs["ci"]?.steps.flatMap(({ run }) => run ?? [])).toEqual([".ci/run"]);
  expect(jobs["pull-request"]?.container.options).toBeUndefined();
});
