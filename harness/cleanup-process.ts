import { rmSync } from "node:fs";
import { isRunning, killTree, signal, thawTree } from "./processes.ts";

/** Reads tasks from standard input. It ends when the process that writes them ends; then the tasks are done. */
export type CleanupTask =
  | { readonly process: number; readonly quit: NodeJS.Signals }
  | { readonly ended: number }
  | { readonly folder: string };

const QUIT_TIMEOUT_MS = 3_000;

if (import.meta.main) {
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  await cleanUp(parse(await Bun.stdin.text()));
}

function parse(text: string): CleanupTask[] {
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

async function cleanUp(tasks: readonly CleanupTask[]): Promise<void> {
  const ended = new Set(tasks.flatMap((task) => ("ended" in task ? task.ended : [])));
  await Promise.all(
    tasks.map(async (task) => {
      if ("process" in task && !ended.has(task.process)) await quit(task.process, task.quit);
    }),
  );
  for (const task of tasks) {
    if ("folder" in task) rmSync(task.folder, { recursive: true, force: true });
  }
}

/** The quit signal comes first, because PostgreSQL leaves shared memory behind when it is killed. */
async function quit(pid: number, name: NodeJS.Signals): Promise<void> {
  thawTree(pid);
  signal(pid, name);
  const deadline = Date.now() + QUIT_TIMEOUT_MS;
  while (isRunning(pid) && Date.now() < deadline) await Bun.sleep(20);
  await killTree(pid);
}
