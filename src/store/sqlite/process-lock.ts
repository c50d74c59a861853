import { Database } from "bun:sqlite";
import { isBusy } from "./sqlite-errors.ts";

export interface ProcessLock {
  release(): void;
}

/** Referenced here so that no lock is garbage-collected, which would close its database and release it. */
const heldLocks = new Set<Database>();

/**
 * Takes a lock that one process at a time can hold. The kernel releases it when the process ends, in whatever way.
 * Returns undefined when another process holds it.
 *
 * The lock is an exclusive transaction on a file of its own, which stays empty. Nothing else in this process may open
 * the file: closing any descriptor of a file drops all locks that the process has on it.
 */
export function acquireLock(path: string): ProcessLock | undefined {
  let database: Database | undefined;
  try {
    database = new Database(path, { create: true, readwrite: true });
    database.run("PRAGMA busy_timeout = 0");
    database.run("BEGIN EXCLUSIVE");
    return lockOn(database);
  } catch (error) {
    database?.close(true);
    if (isBusy(error)) return undefined;
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot lock ${path}: ${reason}`, { cause: error });
  }
}

function lockOn(database: Database): ProcessLock {
  heldLocks.add(database);
  return {
    release() {
      if (heldLocks.delete(database)) database.close(true);
    },
  };
}
