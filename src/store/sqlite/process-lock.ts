import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { statOf } from "../../runtime/own-files.ts";
import { createDatabaseFile, openFile } from "./database-file.ts";
import { failureOf, isBusy } from "./errors.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import { OPEN_ELSEWHERE_MS, PAUSE_MS, STATEMENT_WAIT_MS } from "./waits.ts";

interface ProcessLock extends Disposable {
  release(): void;
}

/** The locks of this process. A lock that is garbage-collected would close its database, which releases it. */
const heldLocks = new Set<Database>();

/**
 * Takes a lock that one process at a time can hold. The kernel releases it when the process ends, for whatever reason.
 * Returns undefined when another process holds it.
 *
 * The lock is an exclusive transaction on a file of its own. Nothing else in this process may open the file, because
 * closing any descriptor of a file releases all locks that the process has on it.
 *
 * A process may hold the lock on an earlier file, if the lock file was removed or replaced since. The lock on a new
 * file is therefore taken only if no other process has one of the `databases` open.
 */
export function acquireLock(path: string, databases: readonly string[] = []): ProcessLock | undefined {
  let lock: Database | undefined;
  try {
    createDatabaseFile(path);
    lock = openFile(path);
    lock.run(`PRAGMA busy_timeout = ${STATEMENT_WAIT_MS.none}`);
    // This mode keeps the lock between transactions too.
    lock.run("PRAGMA locking_mode = EXCLUSIVE");
    lock.run("PRAGMA journal_mode = MEMORY");
    lock.run("BEGIN EXCLUSIVE");
    const mark = markOf(path);
    const { user_version: marked } =
      lock.query<{ user_version: number }, []>("PRAGMA user_version").get() ?? {};
    if (marked !== mark) {
      if (databases.some((database) => isOpenElsewhere(database))) {
        lock.close(true);
        return undefined;
      }
      lock.run(`PRAGMA user_version = ${mark}; COMMIT; BEGIN EXCLUSIVE`);
    }
    heldLocks.add(lock);
  } catch (error) {
    lock?.close(true);
    if (isBusy(error)) return undefined;
    throw failureOf("lock", path, error);
  }
  const held = lock;
  const release = () => {
    if (heldLocks.delete(held)) held.close(true);
  };
  return { release, [Symbol.dispose]: release };
}

/**
 * The number that identifies a lock file. It contains its own inode number, so a copy and a new file are recognized as
 * such. `user_version` holds a positive 32-bit integer.
 */
function markOf(path: string): number {
  return ((statOf(path)?.ino ?? 0) % 0x7fff_fffe) + 1;
}

/** Whether another process has a database open. Every open connection in WAL mode holds a shared lock on the file. */
export function isOpenElsewhere(path: string, waitMs = OPEN_ELSEWHERE_MS): boolean {
  if (!existsSync(path)) return false;
  const deadline = scheduler.now() + waitMs;
  while (!canLock(path)) {
    if (scheduler.now() > deadline) return true;
    Bun.sleepSync(PAUSE_MS.openElsewhere);
  }
  return false;
}

/** Lets nobody write to a database that everybody can read. A damaged one cannot be locked; nobody can write to it. */
export function lockWrites(path: string): Disposable {
  if (!existsSync(path)) return { [Symbol.dispose]() {} };
  const database = openFile(path);
  try {
    database.run("BEGIN IMMEDIATE");
  } catch {
    // Whoever writes at this moment has the database open afterwards, or is found to have had it open.
  }
  return { [Symbol.dispose]: () => database.close(true) };
}

function canLock(path: string): boolean {
  const database = openFile(path);
  try {
    database.run(`PRAGMA busy_timeout = ${STATEMENT_WAIT_MS.none}`);
    database.run("PRAGMA locking_mode = EXCLUSIVE");
    database.run("BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    // Opening the store will report every other error.
    return !isBusy(error);
  } finally {
    database.close(true);
  }
}
