import { readFileSync, rmSync } from "node:fs";
import { Child, type ChildOptions, waitFor } from "./child.ts";
import { freezeTree, isRunning, killTree, signal, thawTree } from "./processes.ts";

/** The paths of PEM files. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
}

interface ServerOptions extends Pick<ChildOptions, "user" | "quit" | "onLine"> {
  readonly url: string;
  /** The directory of its data. */
  readonly cwd: string;
  readonly command: readonly string[];
  /** Matches the line that it logs when it accepts connections. */
  readonly ready: RegExp;
  readonly stop: NodeJS.Signals;
}

export type Server = Awaited<ReturnType<typeof startServer>>;

/** Starts a PostgreSQL server on the loopback address. */
export async function startServer(options: ServerOptions) {
  let child = await spawn(options);
  const untilEnded = () => waitFor("the end of a server", child.ended, child);
  const stop = async () => {
    if (!child.hasExited) {
      thawTree(child.pid);
      signal(child.pid, options.stop);
    }
    await untilEnded();
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
    /** Stops the server and removes its data: a command that starts many of them would fill the disk. */
    async discard() {
      await stop();
      rmSync(options.cwd, { recursive: true, force: true });
    },
    /** Sends SIGKILL to all its processes. */
    async kill() {
      if (!child.hasExited) await killTree(child.pid);
      await untilEnded();
    },
    /** Sends SIGSTOP: connections stay open and the kernel accepts new ones, but the server does not respond. */
    freeze: () => void freezeTree(child.pid),
    thaw: () => thawTree(child.pid),
    /** Starts the server again at the same address and on the same data. If it is running, it is stopped first. */
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
  await waitFor("a server that starts", child.line(ready), child);
  return child;
}

/** A port of another protocol to which no browser connects: the Fetch standard blocks it. */
const BLOCKED_PORT = 10_080;
/** More than the workers of the test runner, each of which has ports of its own: a server takes its port later. */
const MAX_WORKERS = 16;

/**
 * Finds a free port below the range from which the kernel takes the ports of outgoing connections. Inside that range,
 * an outgoing connection could take the port of a server that is down; a client that retries until the port opens could
 * even be connected to itself.
 */
export function freePort(): number {
  const end = Number.parseInt(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8"), 10);
  const first = Math.min(10_000, end - 1_000);
  const size = Math.floor((end - first) / MAX_WORKERS);
  const start = first + size * (Number(process.env.JEST_WORKER_ID ?? 0) % MAX_WORKERS);
  for (;;) {
    const port = start + Math.floor(Math.random() * size);
    if (port !== BLOCKED_PORT && isFree(port)) return port;
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

/** Starts something, and repeats that if it fails with a matching message. */
export async function startAgainAfter<T>(failure: RegExp, start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === ATTEMPTS || !failure.test(String(error))) throw error;
    }
  }
}

/**
 * Starts a server that cannot choose a port itself. Another process may take the port first, so the start is repeated.
 */
export const onFreePort = <T>(start: (port: number) => Promise<T>) =>
  startAgainAfter(/already in use/i, () => start(freePort()));
