import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { Connection } from "./connection.ts";
import { createDatabaseFile, keepLogFiles, MAX_IDLE_LOG_BYTES, openFile } from "./database-file.ts";
import { failureOf, isBusy } from "./errors.ts";
import type { Migration, TableUse } from "../sql/migrations.ts";
import { applySqliteMigrations, rejectForeignDatabase } from "./migrate.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import { PAUSE_MS, STATEMENT_WAIT_MS } from "./waits.ts";

/** Earlier versions can corrupt the file when one process checkpoints the log while another writes. */
const OLDEST_SQLITE = "3.51.3";
const SELECT_VERSION = "SELECT sqlite_version() AS version";

/** Returns the version of SQLite, and whether the store supports it. */
export function sqliteVersion() {
  using database = new Database(":memory:");
  const version = database.query<{ version: string }, []>(SELECT_VERSION).get()?.version ?? "0";
  return { version, isSupported: Bun.semver.order(version, OLDEST_SQLITE) >= 0, oldest: OLDEST_SQLITE };
}

interface DatabaseOptions {
  readonly migrations: readonly Migration[];
  /** Which tables are opened; by default, a new file gets tables. */
  readonly use?: TableUse | undefined;
  /** With FULL, commits survive a power failure. With NORMAL, it can undo the last ones, and a crash can undo none. */
  readonly synchronous: "FULL" | "NORMAL";
  /** Bounds resident memory, however large the file is: the file is not memory-mapped. */
  readonly cacheKiB: number;
  /** How long a statement waits while another process writes, once the database is open. */
  readonly busyTimeoutMs: number;
  /** Called before each commit. It can throw, which rolls the transaction back. */
  readonly beforeCommit?: () => void;
  /** How integers are read; as bigint by default. */
  readonly integers?: "number";
  /** Whether closing the database always leaves its log. */
  readonly keepsFiles?: boolean;
}

export function openDatabase(path: string, options: DatabaseOptions): Connection {
  return openDatabaseFor(path, options, (connection) => connection);
}

/** Opens a database and creates what uses it. Every error on the way, including those of `create`, names the file. */
export function openDatabaseFor<T>(
  path: string,
  options: DatabaseOptions,
  create: (connection: Connection) => T,
): T {
  try {
    if (options.use !== "existing") createDatabaseFile(path);
    const database = openFile(path);
    if (options.keepsFiles || existsSync(`${path}-shm`)) keepLogFiles(database);
    const connection = new Connection(database, options);
    try {
      configure(connection, options);
      applySqliteMigrations(connection, options.migrations, options.use ?? "create");
      connection.exec(`PRAGMA busy_timeout = ${options.busyTimeoutMs}`);
      return create(connection);
    } catch (error) {
      connection.close();
      throw error;
    }
  } catch (error) {
    throw failureOf("open the database", path, error);
  }
}

function configure(connection: Connection, { synchronous, cacheKiB }: DatabaseOptions): void {
  // This comes first, because every later statement may have to wait: even the next one reads the schema from the file.
  connection.exec(`PRAGMA busy_timeout = ${STATEMENT_WAIT_MS.opening}`);
  const { version, isSupported, oldest } = sqliteVersion();
  if (!isSupported) throw new Error(`SQLite ${version} is too old; ${oldest} or newer is required`);
  rejectForeignDatabase(connection);
  enableWriteAheadLog(connection);
  connection.exec(`PRAGMA synchronous = ${synchronous}`);
  connection.exec("PRAGMA foreign_keys = ON");
  connection.exec(`PRAGMA cache_size = -${cacheKiB}`);
  connection.exec("PRAGMA mmap_size = 0");
  connection.exec(`PRAGMA journal_size_limit = ${MAX_IDLE_LOG_BYTES}`);
}

/**
 * Turns on the write-ahead log, with retries. When several processes open an empty file at the same time, each can hold
 * a lock that another waits for. A few of them then get "locked" at once, whatever the busy timeout is.
 */
function enableWriteAheadLog(connection: Connection): void {
  const deadline = scheduler.now() + STATEMENT_WAIT_MS.opening;
  for (;;) {
    try {
      const mode = connection.value("PRAGMA journal_mode = WAL");
      if (mode === "wal") return;
      throw new Error(
        `its file system does not support a write-ahead log (journal mode ${String(mode)}); choose a local directory`,
      );
    } catch (error) {
      if (!isBusy(error) || scheduler.now() > deadline) throw error;
      Bun.sleepSync(PAUSE_MS.opening);
    }
  }
}
