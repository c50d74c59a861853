import { join } from "node:path";
import { charge } from "../engines/charges.ts";

const MAIN = join(import.meta.dir, "../../src/cli/main.ts");

/** A line of a server's log, taken apart. */
export interface LogLine {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly level: string;
  readonly event: string;
  /** JSON, or nothing. */
  readonly details: string;
}

/** One server in a process of its own, with everything it says. */
export interface Instance {
  /** Base address, `/v1` included. */
  readonly url: string;
  /** The key that it printed, if it was the one that made the first. */
  readonly key: string | undefined;
  readonly pid: number;
  /** Grows while the server runs. */
  readonly log: readonly LogLine[];
  /** Sends the signal and gives the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number>;
}

/** `under` is a command that makes itself into the one behind it, such as `nice`. */
export async function startInstance(
  flags: readonly string[],
  under: readonly string[] = [],
): Promise<Instance> {
  const child = Bun.spawn([...under, process.execPath, MAIN, "serve", ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  charge({ server: child.pid, quit: "SIGKILL" });
  const log: LogLine[] = [];
  const unread: string[] = [];
  const followed = follow(child.stderr, (line) => {
    const parsed = parse(line);
    if (parsed) log.push(parsed);
    else unread.push(line);
  });
  const greeting = await greetingOf(child.stdout);
  if (greeting === undefined) {
    await followed;
    throw new Error(`the server ended with ${await child.exited}: ${unread.join("\n")}`);
  }
  return {
    url: /(http\S+\/v1)\s/.exec(greeting)?.[1] ?? "",
    key: /pet_(?:live|test)_\w+/.exec(greeting)?.[0],
    pid: child.pid,
    log,
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      const code = await child.exited;
      charge({ gone: child.pid });
      await followed;
      return code;
    },
  };
}

/** Everything that is printed at the start comes in one piece, and the server answers by then. */
async function greetingOf(stdout: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const reader = stdout.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  return value && new TextDecoder().decode(value);
}

async function follow(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  }
}

const LINE = /^(\S+Z) (\w+) ([^{]*[^{ ]) ?(.*)$/;

/** Time, level, what happened, and perhaps details as JSON. */
function parse(line: string): LogLine | undefined {
  const [, time = "", level = "", event = "", details = ""] = LINE.exec(line) ?? [];
  return time === "" ? undefined : { at: Date.parse(time), level, event, details };
}
