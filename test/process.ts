import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MAIN = join(import.meta.dir, "../src/cli/main.ts");

/** The program as `npm start` runs it, in a process of its own that a test can kill. */
export interface Running {
  readonly url: string;
  /** The key that the first start printed, if this was it. */
  readonly key: string | undefined;
  readonly process: Bun.Subprocess;
  /** Sends the signal and gives the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number>;
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "petstore-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export async function serve(dataDir: string, flags: readonly string[] = []): Promise<Running> {
  const child = Bun.spawn([process.execPath, MAIN, "serve", "--port", "0", "--data", dataDir, ...flags], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const greeting = await readGreeting(child);
  return {
    url: /(http\S+\/v1)\s/.exec(greeting)?.[1] ?? "",
    key: /pet_(?:live|test)_\w+/.exec(greeting)?.[0],
    process: child,
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      return await child.exited;
    },
  };
}

/** Everything that is printed at the start comes in one piece, and the server answers by then. */
async function readGreeting(child: Bun.Subprocess<"ignore", "pipe">): Promise<string> {
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  if (value === undefined)
    throw new Error(`the server ended with ${await child.exited} before it said anything`);
  return new TextDecoder().decode(value);
}

export function command(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const child = Bun.spawn([process.execPath, MAIN, ...args], { stdout: "pipe", stderr: "pipe" });
  return Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]).then(([code, out, err]) => ({ code, out, err }));
}
