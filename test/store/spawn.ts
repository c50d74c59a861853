import { join } from "node:path";

/** A process of its own that runs one task of sqlite-child.ts. */
export function spawnChild(task: "open" | "write" | "command" | "hold", path: string) {
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

/** Whole lines only: what a killed process was about to say is not said. */
async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
