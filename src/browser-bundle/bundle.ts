import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EncodedContent } from "../api/content-encoding.ts";
import { headerLinesOf } from "../api/responses.ts";
import { EXECUTABLE, type ExecutableContents } from "../executable.ts";

export type BundleName = keyof ExecutableContents["bundles"];
export type Bundle = ExecutableContents["bundles"][BundleName];
/** The texts by file name. */
export type ClientFiles = ExecutableContents["client"];

const ENTRY_POINTS: Readonly<Record<BundleName, readonly string[]>> = {
  console: ["../console/main.tsx", "../console/console.css"],
  docs: ["../docs-site/browser/main.ts", "../docs-site/browser/docs.css"],
};

const ROOT = join(import.meta.dir, "../..");
const TIMEOUT_MS = 60_000;

/** Loads a bundle. The executable contains the bundles; a program that runs from its source builds them. */
export async function loadBundle(name: BundleName): Promise<Bundle> {
  return EXECUTABLE?.bundles[name] ?? runScript("build.ts", ...ENTRY_POINTS[name]);
}

/** Loads the files of the package `@petstore/client`. */
export async function loadClientFiles(): Promise<ClientFiles> {
  return EXECUTABLE?.client ?? runScript("build-client.ts");
}

const CLIENT_RELEASES = join(ROOT, "src/client/releases");
const ARCHIVE = ".tgz";

/** The package of a release, which never changes: lockfiles of applications have its hash. */
export function clientReleaseFile(release: string): string {
  return join(CLIENT_RELEASES, release + ARCHIVE);
}

/** Loads the packages of the releases whose files are in the repository, by release. */
export function loadClientReleases(): Readonly<Record<string, Uint8Array<ArrayBuffer>>> {
  const encoded = EXECUTABLE?.clientReleases ?? readClientReleases();
  return Object.fromEntries(
    Object.entries(encoded).map(([release, text]) => [release, Uint8Array.fromBase64(text)]),
  );
}

/** Reads the packages, in base64, as an executable contains them. */
export function readClientReleases(): ExecutableContents["clientReleases"] {
  const names = readdirSync(CLIENT_RELEASES).filter((name) => name.endsWith(ARCHIVE));
  return Object.fromEntries(
    names.map((name) => [
      name.slice(0, -ARCHIVE.length),
      readFileSync(join(CLIENT_RELEASES, name), "base64"),
    ]),
  );
}

/** Runs a script of this directory, and parses its output. */
async function runScript(...script: string[]) {
  // With the flags of the launcher, Bun reads no settings of the working directory. The script gets no variables, and
  // so no secrets.
  const flags = ["--no-env-file", "--config=/dev/null", `--tsconfig-override=${join(ROOT, "tsconfig.json")}`];
  const child = Bun.spawn([process.execPath, ...flags, ...script], {
    cwd: import.meta.dir,
    env: {},
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: TIMEOUT_MS,
  });
  const [output, problem, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${script.join(" ")} failed: ${problem.trim()}`);
  return JSON.parse(output);
}

const CONTENT_TYPES = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  json: "application/json",
} as const;

/** A file that pages load. */
export interface Asset {
  readonly path: string;
  readonly content: EncodedContent;
}

/** Makes an asset, whose path changes with its content. The path begins with `prefix`, such as `/assets/console-`. */
export function assetOf(prefix: string, extension: keyof typeof CONTENT_TYPES, text: string): Asset {
  const hash = Bun.SHA256.hash(text, "hex").slice(0, 16);
  const headerLines = headerLinesOf({ "Content-Type": CONTENT_TYPES[extension] });
  const content = new EncodedContent({ text, headerLines, isImmutable: true });
  return { path: `${prefix}${hash}.${extension}`, content };
}
