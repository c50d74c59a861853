import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { charge, chargedFolder } from "../engines/charges.ts";
import { provide, type Wanted } from "../engines/programs.ts";
import { listeningPorts } from "./ports.ts";
import { askOnce, Unanswered } from "./wire.ts";

/** How the documented file becomes one that runs here: other addresses, ports and paths, and nothing else. */
export interface Kind {
  readonly wanted: Wanted;
  readonly program: string;
  readonly file: "nginx.conf" | "haproxy.cfg";
  /** What stands in the file → what stands in its place. */
  readonly paths: (folder: string) => Readonly<Record<string, string>>;
  readonly command: (program: string, file: string) => readonly string[];
}

export interface Balancer {
  readonly port: number;
  readonly pid: number;
  readonly folder: string;
  /** Resolves with the first line it writes, from now on, that fits. */
  said(pattern: RegExp): Promise<string>;
  /** Changes the file and has it read again, as `nginx -s reload` does. */
  reload(change: (text: string) => string): void;
  stop(): Promise<void>;
}

const DOCUMENTED = ["10.0.0.11:8080", "10.0.0.12:8080", "10.0.0.13:8080"];
const FOLDER = join(import.meta.dir, "../../docs/balancers");

export async function startBalancer(kind: Kind, instances: readonly number[]): Promise<Balancer> {
  const [port = 0] = listeningPorts(1);
  const folder = chargedFolder("balancer");
  // nginx started by root works as nobody.
  chmodSync(folder, 0o755);
  const file = join(folder, kind.file);
  const text = adapt(kind, { folder, instances, port });
  writeFileSync(file, text);
  const program = join(provide(kind.wanted), kind.program);
  const child = Bun.spawn([...kind.command(program, file)], { stdio: ["ignore", "pipe", "pipe"] });
  charge({ server: child.pid, quit: "SIGTERM" });
  const lines = new Lines();
  const ended = Promise.all([lines.read(child.stdout), lines.read(child.stderr), child.exited]);
  const isUp = await Promise.race([answers(port), ended.then(() => false)]);
  if (!isUp) throw new Error(`${kind.program} did not start:\n${lines.text}`);
  return {
    port,
    pid: child.pid,
    folder,
    said: (pattern) => lines.next(pattern),
    reload(change) {
      writeFileSync(file, change(text));
      child.kill("SIGHUP");
    },
    async stop() {
      child.kill("SIGTERM");
      await ended;
      charge({ gone: child.pid });
    },
  };
}

function adapt(
  { file, paths }: Kind,
  { folder, instances, port }: { folder: string; instances: readonly number[]; port: number },
): string {
  let text = readFileSync(join(FOLDER, file), "utf8");
  const replace = (from: string, to: string) => {
    if (!text.includes(from)) throw new Error(`docs/balancers/${file} has no ${from} any more`);
    text = text.replace(from, to);
  };
  for (const [i, documented] of DOCUMENTED.entries()) replace(documented, `127.0.0.1:${instances[i]}`);
  replace("0.0.0.0:80", `127.0.0.1:${port}`);
  for (const [from, to] of Object.entries(paths(folder))) replace(from, to);
  return text;
}

/** Nothing announces that a port is listened on; whoever is first to be answered knows. */
async function answers(port: number): Promise<true> {
  for (;;) {
    try {
      await askOnce(port, { path: "/healthz" });
      return true;
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      await Bun.sleep(5);
    }
  }
}

class Lines {
  text = "";
  readonly #listeners = new Set<(line: string) => void>();

  async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of stream) {
      const read = decoder.decode(chunk, { stream: true });
      this.text += read;
      const lines = (rest + read).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) for (const listener of this.#listeners) listener(line);
    }
  }

  next(pattern: RegExp): Promise<string> {
    return new Promise((resolve) => {
      const listener = (line: string) => {
        if (!pattern.test(line)) return;
        this.#listeners.delete(listener);
        resolve(line);
      };
      this.#listeners.add(listener);
    });
  }
}
