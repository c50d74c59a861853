import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { migrate, rejectForeignDatabase } from "./migrate.ts";
import type { SqliteMigration } from "./migrations.ts";
import { createPrivateFile } from "./private-file.ts";
import { isBusy, toUnavailable } from "./sqlite-errors.ts";

/** A database, its prepared statements, and transactions. */
export class Connection {
  readonly #begin: Statement<unknown, []>;
  readonly #commit: Statement<unknown, []>;
  readonly #rollback: Statement<unknown, []>;

  /** `writeWaitMs`: how long `transactionWhenUnlocked` waits for the write lock, in addition to the busy timeout. */
  constructor(
    private readonly database: Database,
    private readonly writeWaitMs = 0,
  ) {
    // IMMEDIATE takes the write lock first: a transaction that reads before it writes can have an outdated snapshot.
    this.#begin = this.prepare("BEGIN IMMEDIATE");
    this.#commit = this.prepare("COMMIT");
    this.#rollback = this.prepare("ROLLBACK");
  }

  /** Prepares a statement for the lifetime of the connection. */
  prepare<Row, Params extends SQLQueryBindings[]>(sql: string): Statement<Row, Params> {
    return this.database.prepare<Row, SQLQueryBindings[]>(sql);
  }

  /** Runs any number of statements once. */
  run(sql: string): void {
    this.database.run(sql);
  }

  /** Runs a statement once and returns the first column of its first row. */
  value(sql: string, ...params: SQLQueryBindings[]): unknown {
    using statement = this.database.prepare<unknown, SQLQueryBindings[]>(sql);
    return statement.values(...params)[0]?.[0];
  }

  transaction<T>(work: () => T): T {
    try {
      this.#begin.run();
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      // A full disk ends the transaction; most other errors leave it open.
      if (this.database.inTransaction) this.#rollback.run();
      throw toUnavailable(error);
    }
  }

  /**
   * A transaction that waits for other processes, and blocks the event loop for the busy timeout at most. `work` has
   * no effect outside of the transaction, because it may run again.
   *
   * Retries in short random intervals. SQLite's own busy handler waits up to 100 ms between attempts, and can miss for
   * seconds the gaps of less than a millisecond that a busy server leaves.
   */
  async transactionWhenUnlocked<T>(work: () => T): Promise<T> {
    const deadline = performance.now() + this.writeWaitMs;
    for (;;) {
      try {
        return this.transaction(work);
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadline) throw error;
        await Bun.sleep(2 * Math.random());
      }
    }
  }

  /** `true` finalizes the statements too; an open statement keeps the files open until it is garbage-collected. */
  close(): void {
    this.database.close(true);
  }
}

/** Earlier versions can corrupt the file when one process checkpoints the log while another writes. */
export const OLDEST_SQLITE = "3.51.3";
/** How long opening waits for another process that opens, migrates or writes. */
const OPEN_TIMEOUT_MS = 5_000;
const OPEN_RETRY_MS = 5;
const MAX_IDLE_LOG_BYTES = 64 * 1024 * 1024;

export interface DatabaseOptions {
  readonly migrations: readonly SqliteMigration[];
  /** FULL survives a power failure. With NORMAL a power failure can undo the last commits; a crash cannot. */
  readonly synchronous: "FULL" | "NORMAL";
  /** Bounds resident memory, however large the file is: the file is not memory-mapped. */
  readonly cacheKiB: number;
  /** How long a statement blocks the event loop while another process writes. */
  readonly busyTimeoutMs: number;
  /** How long a transaction that waits for other processes waits in addition, without blocking the event loop. */
  readonly writeWaitMs?: number;
}

export function openDatabase(path: string, options: DatabaseOptions): Connection {
  return openDatabaseFor(path, options, (connection) => connection);
}

/** Opens a database and creates what uses it. Every error on the way, up to the last statement, names the file. */
export function openDatabaseFor<T>(
  path: string,
  options: DatabaseOptions,
  create: (connection: Connection) => T,
): T {
  try {
    createPrivateFile(path);
    const database = new Database(path, { readwrite: true, safeIntegers: true, strict: true });
    const connection = new Connection(database, options.writeWaitMs);
    try {
      configure(connection, options);
      migrate(connection, options.migrations);
      connection.run(`PRAGMA busy_timeout = ${options.busyTimeoutMs}`);
      return create(connection);
    } catch (error) {
      connection.close();
      throw error;
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot open the database ${path}: ${reason}`, { cause: error });
  }
}

function configure(connection: Connection, { synchronous, cacheKiB }: DatabaseOptions): void {
  // First, because every statement after it can have to wait: even the next one reads the schema from the file.
  connection.run(`PRAGMA busy_timeout = ${OPEN_TIMEOUT_MS}`);
  const version = String(connection.value("SELECT sqlite_version()"));
  if (!isAtLeast(version, OLDEST_SQLITE)) {
    throw new Error(`SQLite ${version} is too old; ${OLDEST_SQLITE} or newer is required`);
  }
  rejectForeignDatabase(connection);
  enableWriteAheadLog(connection);
  connection.run(`PRAGMA synchronous = ${synchronous}`);
  connection.run("PRAGMA foreign_keys = ON");
  connection.run(`PRAGMA cache_size = -${cacheKiB}`);
  connection.run("PRAGMA mmap_size = 0");
  connection.run(`PRAGMA journal_size_limit = ${MAX_IDLE_LOG_BYTES}`);
}

/**
 * Retries, because of processes that open an empty file at the same time a few get "locked" at once, whatever the busy
 * timeout is: each holds a lock that the other one waits for.
 */
function enableWriteAheadLog(connection: Connection): void {
  const deadline = performance.now() + OPEN_TIMEOUT_MS;
  for (;;) {
    try {
      const mode = connection.value("PRAGMA journal_mode = WAL");
      if (mode === "wal") return;
      throw new Error(
        `its file system does not support a write-ahead log (journal mode ${String(mode)}); choose a local folder`,
      );
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      Bun.sleepSync(OPEN_RETRY_MS);
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
