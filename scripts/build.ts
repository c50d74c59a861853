/*
 * Builds one executable that contains everything: Bun, the code, the console and the documentation. `npm run build`
 * writes dist/petstore; `npm run build -- --outfile FILE --commit SHA` writes another file, and names the commit if
 * there is no Git repository.
 */

import { mkdirSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { BunPlugin } from "bun";
import { loadBundle, loadClientFiles, readClientReleases } from "../src/browser-bundle/bundle.ts";
import type { ExecutableContents } from "../src/executable.ts";

const ROOT = resolve(import.meta.dir, "..");

/** `runtime` is the Bun of another processor, with which the executable is made for it. */
export async function buildExecutable(
  outfile: string,
  commit: string,
  runtime?: { readonly target: Bun.Build.CompileTarget; readonly executablePath: string },
): Promise<void> {
  mkdirSync(dirname(outfile), { recursive: true });
  const [console, docs, client] = await Promise.all([
    loadBundle("console"),
    loadBundle("docs"),
    loadClientFiles(),
  ]);
  const clientReleases = readClientReleases();
  const contents: ExecutableContents = { commit, bundles: { console, docs }, client, clientReleases };
  const { success, logs } = await Bun.build({
    entrypoints: ["cli/main.ts", "store/sqlite/database-thread.ts"].map((path) => join(ROOT, "src", path)),
    root: join(ROOT, "src"),
    target: "bun",
    format: "esm",
    minify: { syntax: true, whitespace: true },
    bytecode: true,
    plugins: [withContents(contents)],
    // The settings of the working directory are for other programs; the launcher `petstore` ignores them, too.
    compile: { outfile, ...runtime, autoloadDotenv: false, autoloadBunfig: false },
  });
  if (!success) throw new AggregateError(logs, "the executable could not be built");
}

/** Replaces `src/executable.ts` by this module in the bundled program. */
function withContents(contents: ExecutableContents): BunPlugin {
  return {
    name: "executable-contents",
    setup(build) {
      build.onLoad({ filter: /\/src\/executable\.ts$/ }, () => ({
        contents: `export const EXECUTABLE = ${JSON.stringify(contents)};`,
        loader: "js",
      }));
    },
  };
}

/** The commit: twelve digits, with `-modified` if files differ from it; `unknown` without a repository. */
export function currentCommit(): string {
  const git = (...args: string[]) => Bun.spawnSync(["git", "-C", ROOT, ...args], { stderr: "ignore" });
  if (Bun.which("git") === null) return "unknown";
  const commit = git("rev-parse", "--short=12", "HEAD");
  if (commit.exitCode !== 0) return "unknown";
  const isModified = git("status", "--porcelain", "--untracked-files=no").stdout.length > 0;
  return `${commit.stdout.toString().trim()}${isModified ? "-modified" : ""}`;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      outfile: { type: "string", default: join(ROOT, "dist/petstore") },
      commit: { type: "string" },
    },
  });
  const outfile = resolve(values.outfile);
  const commit = values.commit ?? currentCommit();
  const startedAt = performance.now();
  await buildExecutable(outfile, commit);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const megabytes = Math.round(statSync(outfile).size / 1e6);
  const path = relative(process.cwd(), outfile);
  process.stdout.write(`${path}: ${megabytes} MB, commit ${commit}, in ${seconds} s\n`);
}
