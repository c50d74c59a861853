import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import packageJson from "../package.json" with { type: "json" };

const read = (path: string) => readFileSync(join(import.meta.dir, "..", path), "utf8");

test.each([
  ["package-lock.json", /^\{\n {2}"name": "petstore",\n {2}"version": "([^"]+)"/],
  ["src/client/transport.ts", /"petstore-client\/([^"]+)"/],
  ["deploy/compose/compose.yaml", /image: petstore:(\S+)/],
  ["deploy/kubernetes/petstore.yaml", /image: \S+\/petstore:(\S+)/],
  ["deploy/kubernetes/limits.yaml", /name: migrate\n *image: \S+\/petstore:(\S+)/],
  ["deploy/kubernetes/limits.yaml", /name: apply\n *image: \S+\/petstore:(\S+)/],
  ["deploy/container/Containerfile", /-t petstore:(\S+)/],
  ["docs/deployment.md", /^ {4}petstore (\S+) \(commit/m],
])("%s names the version of package.json", (path, pattern) => {
  expect(pattern.exec(read(path))?.[1]).toBe(packageJson.version);
});

test("the changelog has the release with its date, and every earlier one", () => {
  const headings = read("CHANGELOG.md").match(/^## .*$/gm) ?? [];
  expect(headings).toContain(`## ${packageJson.version} (${packageJson.releaseDate})`);
  for (const heading of headings)
    expect(heading).toMatch(/^## (?:Unreleased|\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\))$/);
});

test("the newest part of the changelog is short: 10 items for clients, 12 for operators", () => {
  const [, newest = ""] = read("CHANGELOG.md").split(/^## /m);
  const items = (heading: string) => {
    const [, part = ""] = newest.split(`### ${heading}\n`);
    return part.split(/^### /m)[0]?.match(/^- /gm)?.length ?? 0;
  };
  expect(items("For clients")).toBeWithin(0, 11);
  expect(items("For operators")).toBeWithin(0, 13);
});

test.each(["README.md", "CONTRIBUTING.md", "docs/client-library.md", "src/client/README.md"])(
  "%s names the oldest Node of package.json, which the client package has, too",
  (path) => {
    const [, oldest] = /\bNode (\d+) (?:and|or) newer/.exec(read(path)) ?? [];
    expect(`>=${oldest}`).toBe(packageJson.engines.node);
  },
);

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

test("every night runs `npm run nightly`, with the right to read alone", () => {
  const { on, permissions, jobs } = Bun.YAML.parse(read(".github/workflows/nightly.yml")) as {
    on: Record<string, unknown>;
    permissions: Record<string, string>;
    jobs: Record<string, { steps: { run?: string }[] }>;
  };
  expect(Object.keys(on)).toContain("schedule");
  expect(permissions).toEqual({ contents: "read" });
  expect(jobs["nightly"]?.steps.at(-1)?.run).toBe("npm run nightly");
});

test("a tag publishes what `npm run release` makes, and nothing else runs with the right to publish", () => {
  const { permissions, jobs } = Bun.YAML.parse(read(".github/workflows/release.yml")) as {
    permissions: Record<string, string>;
    jobs: Record<string, { steps: { run?: string; uses?: string }[] }>;
  };
  expect(permissions).toEqual({ contents: "read" });
  const runs = Object.values(jobs).map(({ steps }) => steps.flatMap(({ run }) => run ?? []));
  expect(runs).toEqual([
    ["npm ci", "npm run release -- platform"],
    [
      "npm ci",
      "sudo apt-get install --yes rpm",
      "npm run release -- common checksums",
      expect.stringMatching(/^gh release create "\$GITHUB_REF_NAME" /),
    ],
  ]);
  for (const { uses } of Object.values(jobs).flatMap(({ steps }) => steps))
    if (uses !== undefined) expect(uses).toMatch(/@[0-9a-f]{40}$/);
});

test("npm run release names the programs that are missing, and makes nothing", () => {
  const outdir = join(temporaryDirectory("release"), "files");
  const script = join(import.meta.dir, "..", "scripts/release.ts");
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, script, "--outdir", outdir], {
    env: { PATH: "/nonexistent" },
    stderr: "pipe",
  });
  expect([exitCode, stderr.toString()]).toEqual([
    1,
    "release: missing programs: podman, dpkg-deb, rpmbuild; install them, or name the other parts\n",
  ]);
  expect(existsSync(outdir)).toBe(false);
});
