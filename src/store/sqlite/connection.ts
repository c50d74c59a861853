import {
  type Changes,
  constants as sqlite,
  Database,
  SQLiteError,
  type SQLQueryBindings,
  type Statement,
} from "bun:sqlite";
import { accessSync, closeSync, constants, statfsSync } from "node:fs";
import type { Statement as SqlStatement, Statements } from "../sql/steps.ts";
import { dirname } from "node:path";
import { Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import { createFile, isLink, LINK_PROBLEM, withoutLinks } from "../../runtime/own-files.ts";
import { systemErrorField } from "../../runtime/system-error.ts";
import { PAUSE_MS, STATEMENT_WAIT_MS } from "./waits.ts";

type Values = SQLQueryBindings[];

interface ConnectionOptions {
  /** Called before each commit. It can throw, which rolls the transaction back. */
  readonly beforeCommit?: () => void;
  /**
   * How integers are read: as bigint, or as number, which is faster, from a database that has none above 2^53.
   */
  readonly integers?: "number";
}

export interface TransactionOptions {
  /** How long a transaction waits for the write lock, in addition to the busy timeout; by default not at all. */
  readonly waitMs?: number;
  /** Whether a commit waits for the disk, as it does by default. */
  readonly waitsForDisk?: boolean;
}

/**
 * A connection to a database. A statement is prepared at its first use and kept for the lifetime of the connection; one
 * whose text varies is prepared each time.
 */
export class Connection {
  readonly #statements = new Map<string, Statement<unknown, Values>>();

  constructor(
    private readonly database: Database,
    private readonly options: ConnectionOptions = {},
  ) {}

  all<Row>(sql: string, ...values: Values): Row[] {
    try {
      return this.prepared<Row>(sql).all(...values);
    } catch (error) {
      throw sqliteUnavailable(error, this.database.filename);
    }
  }

  /** Returns the first row. */
  get<Row>(sql: string, ...values: Values): Row | undefined {
    try {
      return this.prepared<Row>(sql).get(...values) ?? undefined;
    } catch (error) {
      throw sqliteUnavailable(error, this.database.filename);
    }
  }

  run(sql: string, ...values: Values): Changes {
    try {
      return this.prepared(sql).run(...values);
    } catch (error) {
      throw sqliteUnavailable(error, this.database.filename);
    }
  }

  prepared<Row>(sql: string): Statement<Row, Values> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#prepare(sql);
      this.#statements.set(sql, statement);
    }
    // The rows have the columns that the statement selects.
    return statement as Statement<Row, Values>;
  }

  #prepare(sql: string): Statement<unknown, Values> {
    const statement = this.database.prepare<unknown, Values>(sql);
    return statement.safeIntegers(this.options.integers !== "number");
  }

  /** Runs any number of statements once. */
  exec(sql: string): void {
    this.database.run(sql);
  }

  /** Runs a statement once and returns the first column of its first row. */
  value(sql: string, ...values: Values): unknown {
    using statement = this.#prepare(sql);
    return statement.values(...values)[0]?.[0];
  }

  /** A number that changes when another connection commits, of this process or of another one. */
  dataVersion(): unknown {
    return this.get<{ data_version: unknown }>("PRAGMA data_version")?.data_version;
  }

  runAll<T>(statements: Statements<T>): T {
    const steps = statements();
    let step = steps.next();
    while (step.done !== true) {
      step = steps.next(step.value.sql === "" ? [] : this.rows(step.value));
    }
    return step.value;
  }

  rows({ sql, values, isVaried = false }: SqlStatement): unknown[] {
    if (!isVaried) return this.all(sql, ...values);
    try {
      using statement = this.#prepare(sql);
      return statement.all(...values);
    } catch (error) {
      throw sqliteUnavailable(error, this.database.filename);
    }
  }

  transaction<T>(work: () => T): T {
    try {
      // IMMEDIATE takes the write lock first. A transaction that reads first could have an outdated snapshot.
      this.run("BEGIN IMMEDIATE");
      const result = work();
      this.options.beforeCommit?.();
      this.run("COMMIT");
      return result;
    } catch (error) {
      // A full disk ends the transaction; most other errors leave it open.
      if (this.database.inTransaction) this.run("ROLLBACK");
      throw sqliteUnavailable(error, this.database.filename);
    }
  }

  /**
   * Runs a transaction that waits for other processes, and blocks the event loop for at most the busy timeout. `work`
   * must have no effect outside of the transaction, because it may run again.
   */
  transactionWhenUnlocked<T>(
    work: () => T,
    { waitMs = 0, waitsForDisk = true }: TransactionOptions = {},
  ): Promise<T> {
    const attempt = () => this.transaction(work);
    return retryWhileBusy(waitsForDisk ? attempt : () => this.#withoutSync(attempt), waitMs);
  }

  #withoutSync<T>(attempt: () => T): T {
    this.exec("PRAGMA synchronous = NORMAL");
    try {
      return attempt();
    } finally {
      this.exec("PRAGMA synchronous = FULL");
    }
  }

  /**
   * Closes the connection. The argument `true` finalizes the statements too; an open statement would keep the files
   * open until it is garbage-collected.
   */
  close(): void {
    this.database.close(true);
  }
}

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

const BUSY = 5;
const FULL = 13;

/** Error codes after which the same call can succeed later, by itself or after an operator has freed space. */
const TRANSIENT_ERRORS: ReadonlySet<number> = new Set([
  BUSY,
  6, // LOCKED
  7, // NOMEM
  8, // READONLY: the disk was remounted after errors, or its permissions changed
  10, // IOERR
  FULL,
  14, // CANTOPEN: no file descriptors left
  15, // PROTOCOL: too many processes compete for a lock
]);

/** The low byte of the extended error code. */
function primaryCode(error: unknown): number | undefined {
  return error instanceof SQLiteError ? error.errno & 0xff : undefined;
}

/** Turns a transient error of SQLite into Unavailable; returns every other error as it is. */
export function sqliteUnavailable(error: unknown, path?: string): unknown {
  const code = primaryCode(error);
  if (code === undefined || !TRANSIENT_ERRORS.has(code)) return error;
  return new Unavailable(`SQLite: ${describeSqliteError(error, path)}`, { cause: error });
}

const DISK_ERRORS: ReadonlySet<number | undefined> = new Set([8, 10, 14]);
/** With less free space, not even the files next to a database can be created. */
const LITTLE_SPACE_BYTES = 128 * 1024;

/** Names a full disk and a read-only file system, which SQLite often reports as "disk I/O error". */
function describeSqliteError(error: unknown, path?: string): string {
  const code = primaryCode(error);
  if (code === FULL) return "the disk is full";
  const problem = path !== undefined && DISK_ERRORS.has(code) ? diskProblem(dirname(path)) : undefined;
  return problem ?? messageOf(error);
}

/** Makes an error that names the file. It omits the error of SQLite if the disk is full or read-only. */
export function failureOf(task: string, path: string, failure: unknown): Error {
  if (isLink(path)) return new Error(`cannot ${task} ${path}: ${LINK_PROBLEM}`);
  const error = failure instanceof Unavailable ? failure.cause : failure;
  const reason = describeSqliteError(error, path);
  const isNamed = primaryCode(error) !== undefined && error instanceof Error && reason !== error.message;
  return new Error(`cannot ${task} ${path}: ${reason}`, isNamed ? {} : { cause: error });
}

function diskProblem(directory: string): string | undefined {
  try {
    accessSync(directory, constants.W_OK);
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize < LITTLE_SPACE_BYTES ? "the disk is full" : undefined;
  } catch (error) {
    return systemErrorField(error, "code") === "EROFS"
      ? `the file system of ${directory} is read-only`
      : undefined;
  }
}

/** Whether another process held the lock. Nothing has been written in that case. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error instanceof Unavailable ? error.cause : error) === BUSY;
}

/**
 * Repeats an attempt at short random intervals while another process holds the lock. SQLite's own busy handler waits up
 * to 100 ms between attempts, and can miss for seconds that the lock is free.
 */
async function retryWhileBusy<T>(attempt: () => T, maxMs: number): Promise<T> {
  const deadline = scheduler.now() + maxMs;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || scheduler.now() >= deadline) throw sqliteUnavailable(error);
      await scheduler.sleep(PAUSE_MS.transaction * scheduler.random());
    }
  }
}
