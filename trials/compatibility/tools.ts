import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";

/** Name → version, exact. */
export type Packages = Readonly<Record<string, string>>;

export interface Output {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Several of the tools want a newer Node than this project does. */
const NODE_VERSION = "24.21.0";
const NODE = `node-linux-${process.arch === "arm64" ? "arm64" : "x64"}`;

/** Programs from npm in a folder of their own: together they are larger than all that `npm ci` installs. */
export class Tools {
  constructor(readonly folder: string) {}

  /** Installs them into a folder, or into one that is removed when this process ends. */
  static async install(packages: Packages, folder: string | undefined): Promise<Tools> {
    const tools = new Tools(folder === undefined ? temporaryFolder("tools") : resolve(folder));
    const names = Object.entries({
      ...packages,
      ...(process.platform === "linux" && { [NODE]: NODE_VERSION }),
    });
    const manifest = { name: "tools", private: true, type: "module" };
    mkdirSync(tools.folder, { recursive: true });
    writeFileSync(join(tools.folder, "package.json"), JSON.stringify(manifest));
    process.stderr.write(`Installing ${names.length} packages into ${tools.folder} …\n`);
    const flags = ["--save-exact", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];
    const command = ["npm", "install", ...flags, ...names.map(([name, version]) => `${name}@${version}`)];
    const { exitCode, out, err } = await run(command, { cwd: tools.folder });
    if (exitCode !== 0) throw new Error(`npm install: ${out}${err}`);
    return tools;
  }

  /** Runs an executable of one of the packages. */
  run(name: string, args: readonly string[], options: RunOptions): Promise<Output> {
    return run([this.#node, join(this.folder, "node_modules/.bin", name), ...args], options);
  }

  /** Runs a script, which can import the packages if it is in their folder. */
  runScript(file: string, args: readonly string[], options: RunOptions): Promise<Output> {
    return run([this.#node, file, ...args], options);
  }

  get #node(): string {
    const installed = join(this.folder, "node_modules", NODE, "bin/node");
    return existsSync(installed) ? installed : "node";
  }
}

/** Kills a program that takes longer; npm has to fetch a hundred megabytes. */
const TIMEOUT_MS = 10 * 60_000;

export async function run(command: readonly string[], { cwd, env }: RunOptions): Promise<Output> {
  const child = Bun.spawn([...command], {
    cwd,
    // The linters report their use or look for newer versions otherwise.
    env: {
      ...process.env,
      REDOCLY_TELEMETRY: "off",
      REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
      NO_COLOR: "1",
      ...env,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: TIMEOUT_MS,
  });
  const [exitCode, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { exitCode, out, err };
}

/** What it prints; throws if it fails. */
export function succeed({ exitCode, out, err }: Output): string {
  if (exitCode !== 0) throw new Error(`exit code ${exitCode}\n${out}${err}`.trim());
  return out;
}

/** One thing that a tool has to do. It throws if the tool finds a problem. */
export interface Check {
  readonly name: string;
  /** Resolves with what is worth knowing about a success. */
  run(): Promise<string>;
}

/** Runs the checks one after the other and prints a line for each. Gives the exit code. */
export async function runChecks(checks: readonly Check[]): Promise<number> {
  const width = Math.max(...checks.map(({ name }) => name.length));
  let failures = 0;
  for (const { name, run } of checks) {
    const line = await run().then(
      (note) => `passed  ${name.padEnd(width)}  ${note}`,
      (error: unknown) => {
        failures++;
        return `FAILED  ${name}: ${error instanceof Error ? error.message : String(error)}`;
      },
    );
    process.stdout.write(`${line.trimEnd()}\n`);
  }
  process.stdout.write(`${checks.length - failures} of ${checks.length} checks passed.\n`);
  return failures === 0 ? 0 : 1;
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
  "@redocly/cli": "2.73.0",
  "@stoplight/spectral-cli": "6.16.3",
  "@apidevtools/swagger-parser": "13.1.0",
  newman: "6.2.2",
  typescript: "5.9.3",
  "@types/node": "24.10.1",
} as const;

/** The programs that `npm run check:package` installs. */
export const PACKAGE_CHECK_PACKAGES = {
  publint: "0.3.25",
  "@arethetypeswrong/cli": "0.18.5",
  deno: "2.9.5",
} as const;
