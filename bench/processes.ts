import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface SpawnOptions {
  /** For the log, and for what is said when it fails. */
  readonly name: string;
  readonly core?: string | undefined;
  readonly stdout?: "pipe" | "ignore";
}

type Child = Bun.Subprocess<"ignore", "pipe" | "ignore", number>;

export interface Running {
  readonly pid: number;
  readonly child: Child;
  /** The last lines it wrote to standard error. */
  complaint(): string;
}

const STOP_TIMEOUT_MS = 12_000;

/** Everything this run has started. Whatever happens, nothing of it outlives the run. */
export class Processes {
  readonly #children = new Set<Child>();

  constructor(private readonly logs: string) {}

  start(command: string[], { name, core, stdout = "ignore" }: SpawnOptions): Running {
    const pinned = core === undefined ? command : ["taskset", "-c", core, ...command];
    const log = join(this.logs, `${name}.log`);
    const child = Bun.spawn(pinned, {
      stdin: "ignore",
      stdout,
      stderr: openSync(log, "a"),
      env: { ...process.env, NODE_ENV: "production" },
    });
    this.#children.add(child);
    void child.exited.then(() => this.#children.delete(child));
    return { pid: child.pid, child, complaint: () => readFileSync(log, "utf8").slice(-2_000) };
  }

  /** By SIGTERM, so that it may put its data in order; by force when it takes too long. */
  async stop({ child }: Running): Promise<void> {
    child.kill("SIGTERM");
    const force = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await child.exited;
    clearTimeout(force);
  }

  killAll(): void {
    for (const child of this.#children) child.kill("SIGKILL");
  }
}
