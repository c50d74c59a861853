import { chmodSync, chownSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CleanupTask } from "./cleanup-process.ts";

function startCleanupProcess() {
  // In a session of its own: Ctrl-C interrupts this process, and must not interrupt the cleanup.
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "cleanup-process.ts")], {
    stdio: ["pipe", "ignore", "inherit"],
    detached: true,
  });
  child.unref();
  return child.stdin;
}

let tasks: ReturnType<typeof startCleanupProcess> | undefined;

/** The task is done when this process ends, even if it is killed. */
export function cleanUpAtExit(task: CleanupTask): void {
  tasks ??= startCleanupProcess();
  tasks.write(`${JSON.stringify(task)}\n`);
  void tasks.flush();
}

/** A folder that is removed when this process ends. */
export function temporaryFolder(name: string, owner?: { uid: number; gid: number }): string {
  const folder = mkdtempSync(join(tmpdir(), `petstore-${name}-`));
  cleanUpAtExit({ folder });
  chmodSync(folder, 0o700);
  if (owner) chownSync(folder, owner.uid, owner.gid);
  return folder;
}
