import { readFileSync, rmSync } from "node:fs";
import { Child, type ChildOptions } from "./child.ts";
import { freezeTree, isRunning, killTree, signal, thawTree } from "./processes.ts";

/** Paths of PEM files. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
}

interface ServerOptions extends Pick<ChildOptions, "user" | "quit"> {
  readonly url: string;
  /** The directory of its data. */
  readonly cwd: string;
  readonly command: readonly string[];
  /** Matches the line that it writes when it accepts connections. */
  readonly ready: RegExp;
  readonly stop: NodeJS.Signals;
}

export type Server = Awaited<ReturnType<typeof startServer>>;

/** A PostgreSQL or Valkey server on the loopback address. */
export async function startServer(options: ServerOptions) {
  let child = await spawn(options);
  const stop = async () => {
    thawTree(child.pid);
    signal(child.pid, options.stop);
    await child.ended;
  };
  return {
    url: options.url,
    directory: options.cwd,
    get pid() {
      return child.pid;
    },
    get isRunning() {
      return isRunning(child.pid);
    },
    stop,
    /** Stops it and removes its data: a command that starts many would fill the disk. */
    async discard() {
      await stop();
      rmSync(options.cwd, { recursive: true, force: true });
    },
    /** SIGKILL to all its processes. */
    async kill() {
      await killTree(child.pid);
      await child.ended;
    },
    /** SIGSTOP: connections stay open and the kernel accepts new ones, but the server does not respond. */
    freeze: () => void freezeTree(child.pid),
    thaw: () => thawTree(child.pid),
    /** At the same address, on the same data; stops it first if it is running. */
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

/**
 * A free port below the range from which the kernel takes the ports of outgoing connections. Inside that range, an
 * outgoing connection could take the port of a server that is down; a client that retries until the port opens could
 * even be connected to itself.
 */
export function freePort(): number {
  const end = Number.parseInt(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8"), 10);
  const start = Math.min(10_000, end - 1_000);
  for (;;) {
    const port = start + Math.floor(Math.random() * (end - start));
    if (isFree(port)) return port;
  }
}

export function freePorts(count: number): number[] {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(freePort());
  return [...ports];
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

const ATTEMPTS = 5;

/** Starts it again if it fails with a message that matches. */
export async function startAgainAfter<T>(failure: RegExp, start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === ATTEMPTS || !failure.test(String(error))) throw error;
    }
  }
}

/** For servers that cannot choose a port themselves. Another process may take the port before the server does. */
export const onFreePort = <T>(start: (port: number) => Promise<T>) =>
  startAgainAfter(/already in use/i, () => start(freePort()));
