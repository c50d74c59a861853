import { DeadlineExceeded, withTimeout } from "../../src/runtime/timeout.ts";
import { cleanUpAtExit } from "./cleanup.ts";

export interface ChildOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  readonly core?: string | undefined;
  /**
   * Whether the process gets a session of its own. Linux may divide the time of the cores among sessions first, and
   * then among the processes of each.
   */
  readonly ownSession?: boolean;
  /** The signal that ends it when this process ends. */
  readonly quit?: NodeJS.Signals;
  /** The time in milliseconds after which the process is killed; 0 means never. */
  readonly timeout?: number;
  readonly onLine?: (line: string) => void;
}

const MAX_OUTPUT = 65_536;
const STOP_TIMEOUT_MS = 12_000;
/** What is left in a pipe is read in milliseconds, but a process that outlives its parent can hold the pipe open. */
const REST_OF_OUTPUT_MS = 5_000;
/** Shorter than the limit of a test, so that its failure says what it waited for. */
const WAIT_TIMEOUT_MS = 45_000;

/** Settles as `work` does, or rejects with a message that says what was waited for, and how the process is. */
export function waitFor<T>(what: string, work: Promise<T>, child?: Child): Promise<T> {
  return withTimeout(WAIT_TIMEOUT_MS, work).catch((error: unknown) => {
    if (!(error instanceof DeadlineExceeded)) throw error;
    const state = child ? `; ${child.describe()}` : "";
    throw new Error(`waited ${WAIT_TIMEOUT_MS / 1000} s for ${what}${state}`, { cause: error });
  });
}

/** A child process. It never outlives this process, and its output is read so that it never blocks on a full pipe. */
export class Child {
  /** The end of its output on both streams. */
  output = "";
  /** Resolves to the exit code once all output is read, at most five seconds after the exit. */
  readonly ended: Promise<number>;
  readonly #process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #name: string | undefined;
  readonly #listeners = new Set<(line: string) => void>();

  constructor(command: readonly string[], options: ChildOptions = {}) {
    const { env = process.env, core, ownSession = false, quit = "SIGKILL", timeout = 0 } = options;
    const { cwd, user, onLine } = options;
    const pinned = core === undefined ? command : ["taskset", "-c", core, ...command];
    this.#name = command[0];
    this.#process = Bun.spawn([...pinned], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...env },
      detached: ownSession,
      timeout,
      killSignal: "SIGKILL",
      ...(cwd !== undefined && { cwd }),
      ...user,
    });
    if (onLine) this.#listeners.add(onLine);
    const { pid, exited, stdout, stderr } = this.#process;
    cleanUpAtExit({ process: pid, quit });
    const read = Promise.all([this.#read(stdout), this.#read(stderr)]);
    this.ended = exited.then(async (code) => {
      cleanUpAtExit({ ended: pid });
      await withTimeout(REST_OF_OUTPUT_MS, read).catch(ignoreLateness);
      return code;
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get hasExited(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  get cpuMicros(): number {
    return Number(this.#process.resourceUsage()?.cpuTime.total ?? 0);
  }

  /** Allows this process to end while the child is running. */
  unref(): void {
    this.#process.unref();
  }

  /** Resolves to the first line from now on that matches. */
  line(pattern: RegExp): Promise<RegExpExecArray> {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const listener = (line: string) => {
      const match = pattern.exec(line);
      if (match) resolve(match);
    };
    this.#listeners.add(listener);
    void this.ended.then((code) => reject(new Error(`${this.#name} ended with ${code}:\n${this.output}`)));
    return promise.finally(() => this.#listeners.delete(listener));
  }

  /** Whether it runs, and the end of its output. */
  describe(): string {
    return `${this.#name} (${this.pid}) ${this.hasExited ? "has ended" : "is running"}:\n${this.output}`;
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Stops the process and resolves to the exit code. A process that ignores the signal is killed. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number> {
    this.kill(signal);
    const timer = setTimeout(() => this.kill("SIGKILL"), STOP_TIMEOUT_MS);
    const code = await this.ended;
    clearTimeout(timer);
    return code;
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of stream) {
      const text = decoder.decode(chunk, { stream: true });
      this.output = (this.output + text).slice(-MAX_OUTPUT);
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) for (const listener of this.#listeners) listener(line);
    }
  }
}

function ignoreLateness(error: unknown): void {
  if (!(error instanceof DeadlineExceeded)) throw error;
}

interface ProgramOptions extends Pick<ChildOptions, "cwd" | "env" | "timeout"> {
  /** The text for standard input. */
  readonly input?: string;
}

/** Runs a program to its end. */
export async function runProgram(
  command: readonly string[],
  { env, input = "", ...options }: ProgramOptions = {},
) {
  const child = Bun.spawn([...command], {
    ...options,
    env: { ...process.env, ...env },
    stdin: Buffer.from(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [code, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { code, out, err };
}
