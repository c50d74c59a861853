import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { runProgram } from "../harness/child.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { runTrials } from "../harness/trials.ts";

/** The exact versions by name. */
type Packages = Readonly<Record<string, string>>;

interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The version of Node for the tools. Several of them need a newer one than this project. */
const NODE_VERSION = "24.21.0";
const NODE = `node-linux-${process.arch === "arm64" ? "arm64" : "x64"}`;

export type Tools = Awaited<ReturnType<typeof installTools>>;

/**
 * Installs programs from npm into a directory of their own, because together they are larger than everything that
 * `npm ci` installs. Without a directory, they are removed when this process ends.
 */
export async function installTools(packages: Packages, into: string | undefined) {
  const directory = into === undefined ? temporaryDirectory("tools") : resolve(into);
  const node = process.platform === "linux" ? { [NODE]: NODE_VERSION } : {};
  const names = Object.entries({ ...packages, ...node }).map(([name, version]) => `${name}@${version}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), '{"name":"tools","private":true,"type":"module"}');
  process.stderr.write(`Installing ${names.length} packages into ${directory} …\n`);
  const flags = ["--save-exact", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];
  await run(["npm", "install", ...flags, ...names], { cwd: directory });
  const installed = join(directory, "node_modules", NODE, "bin/node");
  const program = existsSync(installed) ? installed : "node";
  return {
    directory,
    /** Runs an executable of one of the packages. */
    run: (name: string, args: readonly string[], options: RunOptions) =>
      run([program, join(directory, "node_modules/.bin", name), ...args], options),
    /** Runs a script, which can import the packages if it is in their directory. */
    runScript: (file: string, options: RunOptions) => run([program, file], options),
  };
}

/** The timeout of a program. npm must fetch a hundred megabytes. */
const TIMEOUT_MS = 10 * 60_000;
/** The variables that stop linters from reporting their use and looking for newer versions. */
const QUIET = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true", NO_COLOR: "1" };

/** Runs a program and returns its output. Throws if it fails. */
export async function run(command: readonly string[], { cwd, env }: RunOptions) {
  const { code, out, err } = await runProgram(command, {
    cwd,
    env: { ...QUIET, ...env },
    timeout: TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`exit code ${code}\n${out}${err}`.trim());
  return { out, err };
}

/** The checks by the packages that they check. A check returns a remark, and throws if a tool finds a problem. */
export type Checks = Readonly<Record<string, () => Promise<string>>>;

/** Runs the checks and returns the exit code. */
export function runChecks(packages: Packages, checks: Checks): Promise<number> {
  const trials = Object.entries(checks).map(([name, check]) => {
    const versions = name.split(" with ").map((each) => `${each} ${packages[each]}`);
    return { title: versions.join(" with "), check };
  });
  return runTrials({ trials, run: async ({ check }) => ({ problems: [], note: await check() }) });
}

/** Compares values as JSON. */
export function expectEqual(what: string, actual: unknown, expected: unknown): void {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (found !== wanted) throw new Error(`${what} is ${found}, expected ${wanted}`);
}

/** The programs that `npm run generators` installs. */
export const GENERATOR_PACKAGES = {
  "openapi-typescript": "7.13.0",
  "openapi-fetch": "0.17.0",
  "@hey-api/openapi-ts": "0.99.0",
  orval: "8.38.0",
  // orval would install a later version, some of which need packages that are missing from registries.
  "@scalar/openapi-parser": "0.29.8",
  "openapi-to-postmanv2": "6.3.3",
  newman: "6.2.2",
  "@redocly/cli": "2.73.0",
  "@stoplight/spectral-cli": "6.16.3",
  "@apidevtools/swagger-parser": "13.1.0",
  typescript: "5.9.3",
  "@types/node": "24.10.1",
} as const;
