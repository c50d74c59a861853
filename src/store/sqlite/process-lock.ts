import { Database } from "bun:sqlite";
import { isBusy } from "./sqlite-errors.ts";

export interface Lock {
  release(): void;
}

/** A database that is garbage-collected is closed, and a lock must not depend on who still remembers it. */
const held = new Set<Database>();

/**
 * Held by at most one process, and let go by the kernel however that process ends. Gives undefined when it is held.
 *
 * The lock is an exclusive transaction on a file of its own, which stays empty. Nothing else in the process may open
 * that file, not even to read: closing any descriptor of a file drops the locks that the process has on it.
 */
export function acquireLock(path: string): Lock | undefined {
  let database: Database | undefined;
  try {
    database = new Database(path, { create: true, readwrite: true });
    database.run("PRAGMA busy_timeout = 0");
    database.run("BEGIN EXCLUSIVE");
    return holding(database);
  } catch (error) {
    database?.close(true);
    if (isBusy(error)) return undefined;
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot lock ${path}: ${reason}`, { cause: error });
  }
}

function holding(database: Database): Lock {
  held.add(database);
  return {
    release() {
      if (held.delete(database)) database.close(true);
    },
  };
}
