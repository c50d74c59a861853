import { Database } from "bun:sqlite";
import { join, resolve } from "node:path";
import { cleanUpAtExit, temporaryFolder } from "../../harness/cleanup.ts";
import { freePort } from "../../harness/ports.ts";

/** The program is used by its command line alone, so that another version of it can be played to as well. */
const ENTRY = resolve(process.env.RECORDED_ENTRY ?? join(import.meta.dir, "../../src/cli/main.ts"));
const CLOCK = join(import.meta.dir, "clock.ts");

export interface Clock {
  readonly offsetMs?: number;
  readonly speed?: number;
}

export interface ServerOptions {
  /** By the name that requests use: the flags of `keys create`. */
  readonly keys?: Readonly<Record<string, readonly string[]>>;
  /** Flags of every command, where data and usage are not in the folder. */
  readonly engines?: () => Promise<readonly string[]>;
  /** Of `serve`. */
  readonly flags?: readonly string[];
  readonly clock?: Clock;
  /** What happens to the keys before the server starts. */
  readonly prepare?: (server: Server) => Promise<unknown>;
}

/** One server in a process of its own, with a data folder of its own. */
export class Server {
  port = 0;
  readonly speed: number;
  readonly #startedAt = Date.now();
  readonly #offsetMs: number;
  readonly #data = temporaryFolder("recorded");
  #place: readonly string[] = ["--data", this.#data];
  readonly #secrets = new Map<string, string>();
  readonly #ids = new Map<string, string>();
  #process: Bun.Subprocess | undefined;

  private constructor({ offsetMs = 0, speed = 1 }: Clock) {
    this.#offsetMs = offsetMs;
    this.speed = speed;
  }

  static async start(options: ServerOptions): Promise<Server> {
    const server = new Server(options.clock ?? {});
    if (options.engines) server.#place = [...server.#place, ...(await options.engines())];
    for (const [name, flags] of Object.entries(options.keys ?? {})) await server.createKey(name, flags);
    await options.prepare?.(server);
    await server.#serve(options.flags ?? []);
    return server;
  }

  /** Milliseconds, by the server's clock. */
  now(): number {
    return this.#startedAt + this.#offsetMs + (Date.now() - this.#startedAt) * this.speed;
  }

  secret(name: string): string | undefined {
    return this.#secrets.get(name);
  }

  async createKey(name: string, flags: readonly string[], clock?: Clock): Promise<void> {
    const printed = await this.command(["keys", "create", "--name", name, ...flags, "--json"], clock);
    this.#remember(name, printed);
  }

  /** The new secret gets a name of its own. */
  async rollKey(name: string, newName: string, ...flags: string[]): Promise<void> {
    this.#remember(newName, await this.command(["keys", "roll", this.#id(name), ...flags, "--json"]));
  }

  changeKey(name: string, change: string, ...more: string[]): Promise<string> {
    return this.command(["keys", change, this.#id(name), ...more]);
  }

  /** On a busy machine PostgreSQL may not respond to a command in time. */
  async command(args: readonly string[], clock?: Clock, attempts = 3): Promise<string> {
    const child = this.#spawn([...args, ...this.#place], clock);
    const [code, out] = await Promise.all([child.exited, child.stdout.text()]);
    if (code === 0) return out;
    if (attempts === 1) throw new Error(`${args.join(" ")} failed: ${await child.stderr.text()}`);
    return this.command(args, clock, attempts - 1);
  }

  /** The database of pets, past the server. */
  openDatabase(): Database {
    return new Database(join(this.#data, "production.db"), { readwrite: true });
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  async stop(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
    if (this.#process) cleanUpAtExit({ ended: this.#process.pid });
  }

  /** The public address hides the port that the server listens on, so one is chosen; another program may take it. */
  async #serve(flags: readonly string[], attempts = 3): Promise<void> {
    this.port = freePort();
    const clock = { offsetMs: this.#offsetMs, speed: this.speed };
    const child = this.#spawn(["serve", "--port", `${this.port}`, ...flags, ...this.#place], clock);
    cleanUpAtExit({ process: child.pid, quit: "SIGKILL" });
    this.#process = child;
    const { value } = await child.stdout.getReader().read();
    if (value !== undefined) return;
    cleanUpAtExit({ ended: child.pid });
    if (attempts === 1) throw new Error(`the server does not start: ${await child.stderr.text()}`);
    await this.#serve(flags, attempts - 1);
  }

  #spawn(args: readonly string[], { offsetMs = 0, speed = 1 }: Clock = {}) {
    const isReal = offsetMs === 0 && speed === 1;
    return Bun.spawn([process.execPath, ...(isReal ? [] : ["--preload", CLOCK]), ENTRY, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      // A folder without a .env file.
      cwd: this.#data,
      env: { PATH: process.env.PATH, RECORDED_CLOCK: `${this.#startedAt} ${offsetMs} ${speed}` },
    });
  }

  #remember(name: string, printed: string): void {
    this.#ids.set(name, /"id": *(\d+)/.exec(printed)?.[1] ?? "");
    this.#secrets.set(name, /"key": *"(\w+)"/.exec(printed)?.[1] ?? "");
  }

  #id(name: string): string {
    return this.#ids.get(name) ?? "";
  }
}
