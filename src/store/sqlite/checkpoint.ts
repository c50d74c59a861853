/* Checkpoints of a write-ahead log, which run in a thread (database-thread.ts). */

import { messageOf } from "../../runtime/message-of.ts";
import { Connection } from "./connection.ts";
import { keepLogFiles, MAX_IDLE_LOG_BYTES, openFile } from "./database-file.ts";
import { isSyncFailure } from "./errors.ts";
import { STATEMENT_WAIT_MS } from "./waits.ts";

/** `isDone` is false if readers of other connections prevented the end. */
export type CheckpointResult = { readonly isDone: boolean } | { readonly syncFailure: string };

let connection: Connection | undefined;

function connectionTo(path: string): Connection {
  if (connection) return connection;
  const database = openFile(path);
  // This connection may be the last one that is closed.
  keepLogFiles(database);
  connection = new Connection(database);
  connection.exec(`PRAGMA busy_timeout = ${STATEMENT_WAIT_MS.checkpoint}`);
  connection.exec("PRAGMA synchronous = NORMAL");
  connection.exec("PRAGMA wal_autocheckpoint = 0");
  connection.exec(`PRAGMA journal_size_limit = ${MAX_IDLE_LOG_BYTES}`);
  return connection;
}

/** Copies to the database what is committed and what no reader needs in the log, while others read and commit. */
export function copyLog(path: string): CheckpointResult {
  return resultOf(() => isComplete(connectionTo(path), "PASSIVE"));
}

/**
 * Copies the rest, and starts the log anew with one page. SQLite syncs the header of a log that starts anew, so that no
 * power failure leaves the old header before new pages; here, nobody waits for that.
 */
export function restartLog(path: string): CheckpointResult {
  return resultOf(() => {
    const database = connectionTo(path);
    if (!isComplete(database, "RESTART")) return false;
    database.transaction(() => {
      const version = String(database.value("PRAGMA user_version"));
      database.exec(`PRAGMA user_version = ${version}`);
    });
    return true;
  });
}

export function closeCheckpoints(): void {
  connection?.close();
}

function isComplete(database: Connection, mode: "PASSIVE" | "RESTART"): boolean {
  return database.get<{ busy: bigint }>(`PRAGMA wal_checkpoint(${mode})`)?.busy === 0n;
}

function resultOf(checkpoint: () => boolean): CheckpointResult {
  try {
    return { isDone: checkpoint() };
  } catch (error) {
    if (isSyncFailure(error)) return { syncFailure: messageOf(error) };
    throw error;
  }
}
