import { spyOn } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../src/cli/command.ts";
import { runProgram } from "../../src/cli/program.ts";
import type { Variables } from "../../src/config/parse-options.ts";
import { UsageError } from "../../src/config/usage-error.ts";
import { silentLog } from "../../src/log.ts";
import { TestClock } from "../service.ts";

export interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const directories: string[] = [];
const children: Bun.Subprocess[] = [];

/** Each test file calls this in afterAll: a hook here would run for the first file only. */
export async function cleanUp(): Promise<void> {
  // A failed test leaves its processes behind; the others have ended.
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
}

export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "petstore-cli-"));
  directories.push(directory);
  return directory;
}

/** Runs commands in this process, with a test clock and a data directory that does not exist yet. */
export class InProcessCli {
  readonly clock = new TestClock();
  readonly dataDir = join(temporaryDirectory(), "data");

  /** What the user types when a command asks for a secret. */
  secret = "";
  /** What standard input has. */
  input = "";
  /** The progress that commands have shown. */
  progress = "";

  async run(argv: readonly string[], variables: Variables = {}): Promise<Result> {
    let out = "";
    const outcome = await runProgram(argv, {
      variables: { PETSTORE_DATA: this.dataDir, ...variables },
      clock: this.clock,
      print: async (text) =>
        void (out += typeof text === "string" ? text : Buffer.from(text).toString("latin1")),
      isTerminal: () => false,
      errorStream: { isTerminal: false, columns: 80, write: (text) => void (this.progress += text) },
      readInput: () => new Blob([this.input]).stream(),
      user: "ann",
      readSecret: async () => this.secret,
      warn: (line) => void (out += `warning: ${line}\n`),
      openLog: () => silentLog,
      stopSignal: () => Promise.reject(new Error("no server runs in this process")),
    });
    if (outcome === undefined) return { code: 0, out, err: "" };
    return {
      code: outcome instanceof UsageError ? 2 : outcome instanceof Failure ? 1 : NaN,
      out,
      err: outcome.message,
    };
  }

  /** As `run`, while ten seconds pass whenever somebody looks at the monotonic clock. */
  async runSlowly(...argv: string[]): Promise<Result & { progress: string }> {
    let now = performance.now();
    const clock = spyOn(performance, "now").mockImplementation(() => (now += 10_000));
    this.progress = "";
    try {
      return { ...(await this.run(argv)), progress: this.progress };
    } finally {
      clock.mockRestore();
    }
  }

  /** Runs a command with --json that must succeed, and parses its output. */
  async json<T = Record<string, unknown>>(...argv: string[]): Promise<T> {
    const { code, out, err } = await this.run([...argv, "--json"]);
    if (code !== 0) throw new Error(err);
    return JSON.parse(out);
  }
}

const ROOT = join(import.meta.dir, "..", "..");
export const EXECUTABLE = join(ROOT, "petstore");

/** The real executable in a process of its own, without this machine's PETSTORE_ variables. */
export function spawnPetstore(
  argv: readonly string[],
  options: { cwd?: string; variables?: Variables } = {},
) {
  return spawnTracked([EXECUTABLE, ...argv], { cwd: temporaryDirectory(), ...options });
}

export function spawnNpm(...argv: string[]) {
  return spawnTracked(["npm", ...argv], { cwd: ROOT });
}

/** In the project's directory, after nothing but `npm ci`. */
export function spawnNpx(...argv: string[]) {
  return spawnTracked(["npx", "--offline", ...argv], { cwd: ROOT });
}

export function spawnTracked(command: string[], { cwd, variables }: { cwd: string; variables?: Variables }) {
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
