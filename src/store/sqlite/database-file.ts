import { constants as sqlite, Database } from "bun:sqlite";
import { closeSync } from "node:fs";
import { createFile, withoutLinks } from "../../runtime/own-files.ts";
import { Connection } from "./connection.ts";
import { STATEMENT_WAIT_MS } from "./waits.ts";

/** A log that has grown longer is cut to this length when it starts anew. */
export const MAX_IDLE_LOG_BYTES = 64 * 1024 * 1024;

/**
 * Makes closing the database leave its log and shared memory files, because a disk that is full by then has no space to
 * create them again.
 */
export function keepLogFiles(database: Database): void {
  database.fileControl(sqlite.SQLITE_FCNTL_PERSIST_WAL, 1);
}

/**
 * Creates an empty file that only its owner can read, unless the file exists. SQLite fills it, and creates its -wal and
 * -shm files with the same mode and owner. An existing file is not even opened, because closing it would release the
 * locks of this process on it.
 */
export function createDatabaseFile(path: string): void {
  try {
    closeSync(createFile(path));
  } catch {
    // The file exists, or SQLite will report why it cannot be opened.
  }
}

/**
 * Opens a database that exists. With this flag SQLite rejects a link in the path, for an attached database and a copy
 * too; it never follows a link in the place of a log. What the schema of a prepared database calls may have no effects.
 */
export function openFile(path: string): Database {
  const flags = sqlite.SQLITE_OPEN_READWRITE | sqlite.SQLITE_OPEN_NOFOLLOW;
  const database = new Database(withoutLinks(path), flags);
  database.run("PRAGMA trusted_schema = OFF");
  return database;
}

/** Opens a connection that only reads, for a thread that may wait for locks. The database has a write-ahead log. */
export function openForReads(path: string): Connection {
  const flags = sqlite.SQLITE_OPEN_READONLY | sqlite.SQLITE_OPEN_NOFOLLOW;
  const connection = new Connection(new Database(withoutLinks(path), flags));
  connection.exec(`PRAGMA busy_timeout = ${STATEMENT_WAIT_MS.readThread}`);
  connection.exec(`PRAGMA cache_size = -${READ_CACHE_KIB}`);
  return connection;
}

const READ_CACHE_KIB = 8 * 1024;

/** Opens the connection that a server reads with while its writes wait for the disk. */
export function openForServerReads(path: string, cacheKiB: number): Connection {
  const database = openFile(path);
  keepLogFiles(database);
  const connection = new Connection(database);
  connection.exec(`PRAGMA busy_timeout = ${STATEMENT_WAIT_MS.stores}`);
  connection.exec(`PRAGMA cache_size = -${cacheKiB}`);
  connection.exec("PRAGMA mmap_size = 0");
  return connection;
}
