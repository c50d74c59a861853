import { join } from "node:path";
import { type Infer, Invalid, line, nested, object, text } from "../api/schema.ts";
import { EXECUTABLE } from "../executable.ts";

/** Compressed, in base64. */
const base64 = text(4 * 1024 * 1024);
const BundledFile = object({ required: { hash: line(16), br: base64, gzip: base64 } });
export type BundledFile = Infer<typeof BundledFile>;

const Bundle = object({ required: { script: nested(BundledFile), style: nested(BundledFile) } });
/** The script and the style sheet of a set of pages. */
export type Bundle = Infer<typeof Bundle>;
export type BundleName = "console" | "docs";

/** `json` is what build.ts wrote. */
function parseBundle(json: string): Bundle {
  const bundle = Bundle.read(JSON.parse(json));
  if (bundle instanceof Invalid) throw new Error(`The bundle ${bundle.problems.join("; ")}`);
  return bundle;
}

const ROOT = join(import.meta.dir, "../..");
const TIMEOUT_MS = 60_000;

/** The executable contains the bundles; a program that runs from its source makes them. */
export async function loadBundle(name: BundleName): Promise<Bundle> {
  return EXECUTABLE ? parseBundle(EXECUTABLE.bundles[name]) : bundleInChildProcess(name);
}

async function bundleInChildProcess(name: BundleName): Promise<Bundle> {
  // With the flags of the launcher, Bun reads no settings of the working directory. No variable means no secret.
  const flags = ["--no-env-file", "--config=/dev/null", `--tsconfig-override=${join(ROOT, "tsconfig.json")}`];
  const child = Bun.spawn([process.execPath, ...flags, join(import.meta.dir, "build.ts"), name], {
    cwd: ROOT,
    env: {},
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: TIMEOUT_MS,
  });
  const [output, problem, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`The bundle ${name} could not be built: ${problem.trim()}`);
  return parseBundle(output);
}
