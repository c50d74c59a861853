import { afterAll, setDefaultTimeout, spyOn } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Context, Failure } from "../../src/cli/command.ts";
import { describeFailure, runProgram } from "../../src/cli/program.ts";
import type { StopSignal } from "../../src/cli/terminal.ts";
import type { Variables } from "../../src/config/parse-options.ts";
import { NoDatabase } from "../../src/data-location.ts";
import { UsageError } from "../../src/config/usage-error.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sql/migration-steps.ts";
import { createLog, silentLog } from "../../src/observe/log.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { directoryAt } from "../data-directory.ts";
import { TestClock } from "../service.ts";

export interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The result of a command that fails, and of a wrong command line. */
export const failure = (err: string): Result => ({ code: 1, out: "", err });
export const wrongUsage = (err: string): Result => ({ code: 2, out: "", err });

/** A server in this process. */
export type InProcessServer = Awaited<ReturnType<InProcessCli["serve"]>>;

const children: Bun.Subprocess[] = [];
const servers: { stop(): Promise<Result> }[] = [];

/** Each test file calls this: a hook here would run for the first file only. A busy machine takes long. */
export function cleanUpAfterAll(): void {
  setDefaultTimeout(60_000);
  afterAll(cleanUp);
}

/** A command line that is one string has its words separated by spaces. */
const wordsOf = (typed: string | readonly string[]) => (typeof typed === "string" ? typed.split(" ") : typed);

export async function cleanUp(): Promise<void> {
  // A failed test leaves its processes and servers behind; the others have ended.
  for (const server of servers.splice(0)) await server.stop();
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
}

export const cliDirectory = () => temporaryDirectory("cli");

/** Makes a database without rows, as petstore migrate does. */
export function makeDatabase(dataDir: string): void {
  const directory = directoryAt(dataDir);
  directory.prepare();
  const options = {
    migrations: SQLITE_MIGRATIONS,
    synchronous: "NORMAL",
    cacheKiB: 1_024,
    busyTimeoutMs: 1_000,
  } as const;
  openDatabase(directory.files.database, options).close();
}

/** Runs commands in this process, with a test clock and a data directory with a new database. */
export class InProcessCli {
  readonly clock = new TestClock();
  readonly dataDir = join(cliDirectory(), "data");

  constructor({ hasData = true } = {}) {
    if (hasData) makeDatabase(this.dataDir);
  }

  /** What the user types when a command asks for a secret. */
  secret = "";
  /** What standard input has. */
  input = "";
  /** The progress that commands have shown. */
  progress = "";
  /** Whether standard output is a terminal, and its width. */
  isTerminal = false;
  columns = 200;
  /** What commands have asked, and what the user answers. */
  readonly questions: string[] = [];
  answer = true;

  async run(
    typed: string | readonly string[],
    variables: Variables = {},
    context: Partial<Context> = {},
  ): Promise<Result> {
    let out = "";
    const argv = wordsOf(typed);
    const running = runProgram(argv, {
      variables: { PETSTORE_DATA: this.dataDir, ...variables },
      clock: this.clock,
      print: async (text) =>
        void (out += typeof text === "string" ? text : Buffer.from(text).toString("latin1")),
      columns: () => (this.isTerminal ? this.columns : undefined),
      errorStream: { isTerminal: false, columns: 80, write: (text) => void (this.progress += text) },
      readInput: () => new Blob([this.input]).stream(),
      user: "ann",
      readSecret: async () => this.secret,
      confirm: async (question) => {
        this.questions.push(question);
        return this.answer;
      },
      warn: (line) => void (out += `warning: ${line}\n`),
      openLog: () => silentLog,
      // A server that was expected to fail stops as soon as it has started; other commands are not interrupted.
      stopSignal: () => (argv[0] === "serve" ? Promise.resolve("SIGTERM") : new Promise(() => {})),
      ...context,
    });
    return running.then(
      () => ({ code: 0, out, err: "" }),
      (error: unknown) => {
        if (![UsageError, Failure, NoDatabase].some((type) => error instanceof type)) throw error;
        return { ...describeFailure(error), out };
      },
    );
  }

  /** What a command prints, and its warnings. */
  async out(...command: Parameters<InProcessCli["run"]>): Promise<string> {
    return (await this.run(...command)).out;
  }

  /** Why a command fails. */
  async err(...command: Parameters<InProcessCli["run"]>): Promise<string> {
    return (await this.run(...command)).err;
  }

  /** Runs as `run` does, while ten seconds pass whenever somebody looks at the monotonic clock. */
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

  /** Runs a command with --json that must succeed, and parses its output. A single argument is a whole line. */
  async json<T = Record<string, unknown>>(...argv: string[]): Promise<T> {
    const words = argv.length === 1 ? argv.flatMap((line) => line.split(" ")) : argv;
    const { code, out, err } = await this.run([...words, "--json"]);
    if (code !== 0) throw new Error(`${words.join(" ")} exits with ${code}: ${err}\n${out}`);
    return JSON.parse(out);
  }

  /** Starts a server on free ports, unless ports are given; resolves when it accepts requests. */
  async serve(argv: readonly string[] = [], variables: Variables = {}) {
    const anyPort = argv.includes("--port") ? [] : ["--port", "0"];
    const anyAdminPort = argv.includes("--admin-address") ? [] : ["--admin-address", "127.0.0.1:0"];
    const started = await this.start(["serve", ...anyPort, ...anyAdminPort, ...argv], variables);
    return { ...started, ...parseStartMessage(started.message) };
  }

  /** Starts a command that runs until it is stopped; resolves with what it prints first. */
  async start(typed: string | readonly string[], variables: Variables = {}) {
    /** The lines of the log so far. */
    const lines: string[] = [];
    const stopping = Promise.withResolvers<StopSignal>();
    const printed = Promise.withResolvers<string>();
    const ended = this.run(typed, variables, {
      print: async (text) => printed.resolve(String(text)),
      openLog: ({ format = "json", ...options }) =>
        createLog({ ...options, format, write: (line) => void lines.push(line.trimEnd()) }),
      stopSignal: () => stopping.promise,
    });
    void ended.then(({ err }) => printed.reject(new Error(err)), printed.reject);
    const message = await printed.promise;
    /** Resolves when the command has ended. */
    const stop = (signal: StopSignal = "SIGTERM") => {
      stopping.resolve(signal);
      return ended;
    };
    servers.push({ stop });
    return { message, lines, stop, [Symbol.asyncDispose]: async () => void (await stop()) };
  }
}

/** What a server prints when it starts, and what it says. */
export function parseStartMessage(startMessage: string) {
  const [, url = ""] = /^ {2}API +(\S+)$/m.exec(startMessage) ?? [];
  // Empty if the listener for operators is off.
  const [, adminUrl = ""] = /^ {2}Admin +(https?:\/\/[^/\s]+)/m.exec(startMessage) ?? [];
  const [, firstKeyFile] = /^ {2}(\/.*-first-key)$/m.exec(startMessage) ?? [];
  return { startMessage, url, adminUrl, secret: firstKeyFile && readFileSync(firstKeyFile, "utf8").trim() };
}

export const ROOT = join(import.meta.dir, "..", "..");
export const EXECUTABLE = join(ROOT, "petstore");

/** The real executable in a process of its own, without this machine's PETSTORE_ variables. */
export function spawnPetstore(
  typed: string | readonly string[],
  options: { cwd?: string; variables?: Variables } = {},
) {
  return spawnTracked([EXECUTABLE, ...wordsOf(typed)], { cwd: cliDirectory(), ...options });
}

export function spawnTracked(command: string[], { cwd, variables }: { cwd: string; variables?: Variables }) {
  return track(
    Bun.spawn(command, {
      cwd,
      // Nobody is logged in.
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], XDG_CONFIG_HOME: cwd, ...variables },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    }),
  );
}

/** The process does not outlive the test file. */
export function track<T extends Bun.Subprocess>(child: T): T {
  children.push(child);
  return child;
}

/** What it printed, and its exit code. */
export async function resultOf(child: ReturnType<typeof spawnTracked>): Promise<Result> {
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
}

export const petstore = (typed: string | readonly string[]) => resultOf(spawnPetstore(typed));

/** The steps that a command shows as its progress, each once. */
export function stepsIn(progress: string): readonly string[] {
  const steps = [...progress.matchAll(/^petstore: (\w[\w ]*)/gm)].map(([, step = ""]) => step);
  return [...new Set(steps)];
}
