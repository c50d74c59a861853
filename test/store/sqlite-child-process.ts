import { join } from "node:path";

/** Runs a task of sqlite-child.ts in a process of its own. */
export function spawnChild(
  task: "open" | "write" | "change-keys" | "command" | "correct" | "lock",
  path: string,
) {
  const process = Bun.spawn(
    [globalThis.process.execPath, join(import.meta.dir, "sqlite-child.ts"), task, path],
    {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  return { process, lines: linesOf(process.stdout) };
}

/** Complete lines only: a killed process can leave part of one. */
async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
