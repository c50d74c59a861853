import { Database } from "bun:sqlite";
import { Connection } from "./connection.ts";
import { isBusy } from "./sqlite-errors.ts";
import type { Migration } from "../migration.ts";
import { migrate } from "./migrate.ts";
import { refuseForeign } from "./ownership.ts";

/** Before this one, processes that write and tidy up the log at the same instant could corrupt the file. */
const OLDEST_SQLITE = "3.51.3";
/** How long opening waits for another process that is opening, migrating or writing. */
const OPEN_TIMEOUT_MS = 5_000;
const RETRY_EVERY_MS = 5;
const MAX_IDLE_LOG_BYTES = 64 * 1024 * 1024;

export interface OpenOptions {
  readonly migrations: readonly Migration[];
  /**
   * FULL survives a loss of power. NORMAL survives the death of the process, and may lose the last commits with the
   * power.
   */
  readonly synchronous: "FULL" | "NORMAL";
  /** Bounds resident memory, however large the file: nothing is memory-mapped. */
  readonly cacheKiB: number;
  /** How long a statement blocks, event loop and all, while another process writes. */
  readonly busyTimeoutMs: number;
  /** How long a transaction waits for its turn beyond that; blocks as well, so it is for commands. */
  readonly writeWaitMs?: number;
}

export function openDatabase(path: string, options: OpenOptions): Connection {
  return openFor(path, options, (connection) => connection);
}

/** Opens a database for what is made of it. Whatever is in the way, to the last statement, names the file. */
export function openFor<T>(path: string, options: OpenOptions, make: (connection: Connection) => T): T {
  try {
    const database = new Database(path, { create: true, readwrite: true, safeIntegers: true, strict: true });
    const connection = new Connection(database, options.writeWaitMs);
    try {
      configure(connection, options);
      migrate(connection, options.migrations);
      connection.run(`PRAGMA busy_timeout = ${options.busyTimeoutMs}`);
      return make(connection);
    } catch (error) {
      connection.close();
      throw error;
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot open the database ${path}: ${reason}`, { cause: error });
  }
}

function configure(connection: Connection, { synchronous, cacheKiB }: OpenOptions): void {
  // First of all, so that everything after it waits its turn: even the next line reads the file, for its schema.
  connection.run(`PRAGMA busy_timeout = ${OPEN_TIMEOUT_MS}`);
  const version = String(connection.value("SELECT sqlite_version()"));
  if (!isAtLeast(version, OLDEST_SQLITE)) {
    throw new Error(`SQLite ${OLDEST_SQLITE} or newer is needed, and this is ${version}`);
  }
  refuseForeign(connection);
  useWriteAheadLog(connection);
  connection.run(`PRAGMA synchronous = ${synchronous}`);
  connection.run("PRAGMA foreign_keys = ON");
  connection.run(`PRAGMA cache_size = -${cacheKiB}`);
  connection.run("PRAGMA mmap_size = 0");
  connection.run(`PRAGMA journal_size_limit = ${MAX_IDLE_LOG_BYTES}`);
}

/**
 * Of processes that open an empty file together, one in a hundred is told "locked" at once, whatever its busy_timeout:
 * it holds a lock that another waits for, so waiting would not help. Trying again does.
 */
function useWriteAheadLog(connection: Connection): void {
  const deadline = performance.now() + OPEN_TIMEOUT_MS;
  for (;;) {
    try {
      const mode = connection.value("PRAGMA journal_mode = WAL");
      if (mode === "wal") return;
      throw new Error(`its file system offers no write-ahead log (journal mode ${String(mode)})`);
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      Bun.sleepSync(RETRY_EVERY_MS);
    }
  }
}

export function isAtLeast(version: string, oldest: string): boolean {
  const given = version.split(".").map(Number);
  for (const [place, needed] of oldest.split(".").map(Number).entries()) {
    const part = given[place] ?? 0;
    if (part !== needed) return part > needed;
  }
  return true;
}
