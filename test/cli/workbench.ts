import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../src/cli/command.ts";
import { runProgram } from "../../src/cli/program.ts";
import type { Variables } from "../../src/config/option.ts";
import { Problem } from "../../src/config/problem.ts";
import { TestClock } from "../service.ts";

export interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const folders: string[] = [];
const children: Bun.Subprocess[] = [];

/** For each test file to call at its end: a hook here would be run for the first file only that loads this one. */
export async function cleanUp(): Promise<void> {
  // Those that a failed test left behind; the others have ended, and a kill is nothing to them.
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "petstore-cli-"));
  folders.push(folder);
  return folder;
}

/** The program in this process, with a clock that stands still and a folder of its own. */
export class Workbench {
  readonly clock = new TestClock();
  readonly dataDir = join(temporaryFolder(), "data");

  async run(argv: readonly string[], variables: Variables = {}): Promise<Result> {
    let out = "";
    const outcome = await runProgram(argv, {
      variables: { PETSTORE_DATA: this.dataDir, ...variables },
      clock: this.clock,
      print: async (text) => void (out += text),
      warn: (line) => void (out += `warning: ${line}\n`),
      stopAsked: () => Promise.reject(new Error("nothing is served here")),
    });
    if (outcome === undefined) return { code: 0, out, err: "" };
    return {
      code: outcome instanceof Problem ? 2 : outcome instanceof Failure ? 1 : NaN,
      out,
      err: outcome.message,
    };
  }

  /** Runs what must succeed, with --json, and gives what it printed. */
  async json<T = Record<string, unknown>>(...argv: string[]): Promise<T> {
    const { code, out, err } = await this.run([...argv, "--json"]);
    if (code !== 0) throw new Error(err);
    return JSON.parse(out);
  }
}

const ROOT = join(import.meta.dir, "..", "..");
export const EXECUTABLE = join(ROOT, "petstore");

/** Starts the real command in a process of its own. Nothing of this machine's settings reaches it. */
export function spawnPetstore(
  argv: readonly string[],
  options: { cwd?: string; variables?: Variables } = {},
) {
  return spawnTracked([process.execPath, EXECUTABLE, ...argv], { cwd: temporaryFolder(), ...options });
}

/** As a newcomer does it, with npm in between. */
export function spawnNpm(...argv: string[]) {
  return spawnTracked(["npm", ...argv], { cwd: ROOT });
}

function spawnTracked(command: string[], { cwd, variables }: { cwd: string; variables?: Variables }) {
  const child = Bun.spawn(command, {
    cwd,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...variables },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  children.push(child);
  return child;
}

export async function petstore(...argv: string[]): Promise<Result> {
  const child = spawnPetstore(argv);
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
}
