import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRunning, killTree, signal, thawTree } from "./processes.ts";

function startCleanupProcess() {
  // The cleanup has a session of its own, because Ctrl-C must interrupt only this process.
  const child = Bun.spawn([process.execPath, import.meta.path], {
    stdio: ["pipe", "ignore", "inherit"],
    detached: true,
  });
  child.unref();
  return child.stdin;
}

let tasks: ReturnType<typeof startCleanupProcess> | undefined;

/** Registers a task for the end of this process, which is done even if the process is killed. */
export function cleanUpAtExit(task: CleanupTask): void {
  tasks ??= startCleanupProcess();
  tasks.write(`${JSON.stringify(task)}\n`);
  void tasks.flush();
}

/** Creates a directory that is removed when this process ends. */
export function temporaryDirectory(name: string, owner?: { uid: number; gid: number }): string {
  const directory = mkdtempSync(join(tmpdir(), `petstore-${name}-`));
  cleanUpAtExit({ directory });
  if (owner) chownSync(directory, owner.uid, owner.gid);
  return directory;
}

type CleanupTask =
  | { readonly process: number; readonly quit: NodeJS.Signals }
  /** The file that names a process, which another process may start again. */
  | { readonly pidFile: string; readonly quit: NodeJS.Signals }
  | { readonly ended: number }
  | { readonly directory: string };

const QUIT_TIMEOUT_MS = 3_000;

async function cleanUp(tasks: readonly CleanupTask[]): Promise<void> {
  const ended = new Set(tasks.flatMap((task) => ("ended" in task ? task.ended : [])));
  await Promise.all(
    tasks.map(async (task) => {
      if ("process" in task && !ended.has(task.process)) await quit(task.process, task.quit);
    }),
  );
  // These processes may be restarted by those above.
  await Promise.all(
    tasks.map(async (task) => {
      const pid = "pidFile" in task ? pidIn(task.pidFile) : undefined;
      if (pid !== undefined && "pidFile" in task) await quit(pid, task.quit);
    }),
  );
  for (const task of tasks) {
    if ("directory" in task) rmSync(task.directory, { recursive: true, force: true });
  }
}

function pidIn(path: string): number | undefined {
  return existsSync(path) ? Number.parseInt(readFileSync(path, "utf8"), 10) : undefined;
}

/** Ends a process. The quit signal comes first, because PostgreSQL leaves shared memory behind when it is killed. */
async function quit(pid: number, name: NodeJS.Signals): Promise<void> {
  thawTree(pid);
  signal(pid, name);
  const deadline = Date.now() + QUIT_TIMEOUT_MS;
  while (isRunning(pid) && Date.now() < deadline) await Bun.sleep(20);
  await killTree(pid);
}

/** This process reads tasks until the process that writes them ends, and then does them. */
if (import.meta.main) {
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  await cleanUp(Bun.JSONL.parse(await Bun.stdin.text()) as CleanupTask[]);
}
