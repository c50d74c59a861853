import { Child, type ChildOptions } from "./child.ts";
import { freezeTree, isRunning, killTree, signal, thawTree } from "./processes.ts";

/** A PostgreSQL or Valkey server on the loopback address. */
export interface Server {
  readonly url: string;
  readonly pid: number;
  readonly isRunning: boolean;
  stop(): Promise<void>;
  /** SIGKILL to all its processes. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and the kernel accepts new ones, but the server does not respond. */
  freeze(): void;
  thaw(): void;
  /** At the same address, on the same data; stops it first if it is running. */
  restart(): Promise<void>;
}

export interface ServerOptions extends Pick<ChildOptions, "cwd" | "user" | "quit"> {
  readonly url: string;
  readonly command: readonly string[];
  /** Matches the line that it writes when it accepts connections. */
  readonly ready: RegExp;
  readonly stop: NodeJS.Signals;
}

export async function startServer(options: ServerOptions): Promise<Server> {
  let child = await spawn(options);
  const stop = async () => {
    thawTree(child.pid);
    signal(child.pid, options.stop);
    await child.ended;
  };
  return {
    url: options.url,
    get pid() {
      return child.pid;
    },
    get isRunning() {
      return isRunning(child.pid);
    },
    stop,
    async kill() {
      await killTree(child.pid);
      await child.ended;
    },
    freeze: () => void freezeTree(child.pid),
    thaw: () => thawTree(child.pid),
    async restart() {
      await stop();
      child = await spawn(options);
    },
  };
}

async function spawn({ command, ready, ...options }: ServerOptions): Promise<Child> {
  const env = { PATH: process.env.PATH, LC_ALL: "C" };
  const child = new Child(command, { ...options, env, ownSession: true });
  child.unref();
  await child.line(ready);
  return child;
}
