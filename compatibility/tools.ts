import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
    const tools = new Tools(folder ?? temporaryFolder("tools"));
    const names = Object.entries({
      ...packages,
      ...(process.platform === "linux" && { [NODE]: NODE_VERSION }),
    });
    const manifest = { name: "tools", private: true, type: "module" };
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
