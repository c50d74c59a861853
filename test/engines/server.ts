import { charge } from "./charges.ts";
import { freezeFamily, isRunning, killFamily, signal, thawFamily } from "./family.ts";

/** A server that belongs to the tests alone, on the loopback. */
export interface Server {
  readonly url: string;
  readonly pid: number;
  readonly isRunning: boolean;
  /** Ends it in good order. */
  stop(): Promise<void>;
  /** Ends it as a fault does, in the middle of whatever it is doing. */
  kill(): Promise<void>;
  /** Connections stay open and new ones are taken by the kernel, but nothing is answered any more. */
  freeze(): void;
  thaw(): void;
  /** Starts it again at the same address, on the same data; stops it first where it still runs. */
  restart(): Promise<void>;
}

export interface Launch {
  readonly url: string;
  readonly command: readonly string[];
  readonly folder: string;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** What it writes when it can be connected to. */
  readonly ready: string;
  /** What makes it end in good order, and what makes it end at once. */
  readonly signals: { readonly stop: NodeJS.Signals; readonly quit: NodeJS.Signals };
}

const KEPT_OUTPUT = 4_000;

export async function launch(how: Launch): Promise<Server> {
  let running = await spawn(how);
  const end = async (by: (pid: number) => unknown) => {
    await by(running.pid);
    await running.exited;
    charge({ gone: running.pid });
  };
  const stop = () =>
    end((pid) => {
      thawFamily(pid);
      signal(pid, how.signals.stop);
    });

  return {
    url: how.url,
    get pid() {
      return running.pid;
    },
    get isRunning() {
      return isRunning(running.pid);
    },
    stop,
    kill: () => end(killFamily),
    freeze: () => void freezeFamily(running.pid),
    thaw: () => thawFamily(running.pid),
    async restart() {
      await stop();
      running = await spawn(how);
    },
  };
}

async function spawn({ command, folder, user, ready, signals }: Launch): Promise<Bun.Subprocess> {
  const server = Bun.spawn([...command], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", LC_ALL: "C" },
    stdio: ["ignore", "pipe", "pipe"],
    ...user,
  });
  server.unref();
  charge({ server: server.pid, quit: signals.quit });
  let output = "";
  const isReady = Promise.withResolvers<void>();
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    // To the end: a server whose output nobody reads stands still once the pipe is full.
    for await (const chunk of stream) {
      output = (output + decoder.decode(chunk, { stream: true })).slice(-KEPT_OUTPUT);
      if (output.includes(ready)) isReady.resolve();
    }
  };
  const ended = Promise.all([read(server.stdout), read(server.stderr), server.exited]);
  await Promise.race([isReady.promise, ended]);
  if (!output.includes(ready)) {
    charge({ gone: server.pid });
    throw new Error(`${command[0]} did not start:\n${output}`);
  }
  return server;
}
