import {
  type Changes,
  constants as sqlite,
  type Database,
  SQLiteError,
  type SQLQueryBindings,
  type Statement,
} from "bun:sqlite";
import { accessSync, closeSync, constants, mkdirSync, openSync, statfsSync, statSync } from "node:fs";
import { inheritDirectoryOwner, publishDatabase, removeDatabase, removeLog } from "./durable-files.ts";
import type {
  Dialect,
  JsonMember,
  SqlDatabase,
  Statement as SqlStatement,
  Statements,
} from "../statements.ts";
import { dirname } from "node:path";
import { messageOf, Unavailable } from "../../api/errors.ts";
import { type ScheduledTimer, scheduler } from "../../runtime/event-loop.ts";
import { FailureReporter } from "../../runtime/failure-reporter.ts";

type Values = SQLQueryBindings[];

/**
 * A connection to a database. A statement is prepared at its first use and kept for the lifetime of the connection; one
 * whose text varies is prepared each time.
 */
export class Connection {
  readonly #statements = new Map<string, Statement<unknown, Values>>();

  /**
   * `writeWaitMs` is how long `transactionWhenUnlocked` waits for the write lock, in addition to the busy timeout.
   * `beforeCommit` can throw, which rolls the transaction back.
   */
  constructor(
    private readonly database: Database,
    private readonly options: { readonly writeWaitMs?: number; readonly beforeCommit?: () => void } = {},
  ) {}

  all<Row>(sql: string, ...values: Values): Row[] {
    try {
      return this.prepared<Row>(sql).all(...values);
    } catch (error) {
      throw toUnavailable(error, this.database.filename);
    }
  }

  /** Returns the first row. */
  get<Row>(sql: string, ...values: Values): Row | undefined {
    try {
      return this.prepared<Row>(sql).get(...values) ?? undefined;
    } catch (error) {
      throw toUnavailable(error, this.database.filename);
    }
  }

  run(sql: string, ...values: Values): Changes {
    try {
      return this.prepared(sql).run(...values);
    } catch (error) {
      throw toUnavailable(error, this.database.filename);
    }
  }

  prepared<Row>(sql: string): Statement<Row, Values> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare<unknown, Values>(sql);
      this.#statements.set(sql, statement);
    }
    // The rows have the columns that the statement selects.
    return statement as Statement<Row, Values>;
  }

  /** Runs any number of statements once. */
  exec(sql: string): void {
    this.database.run(sql);
  }

  /** Runs a statement once and returns the first column of its first row. */
  value(sql: string, ...values: Values): unknown {
    using statement = this.database.prepare<unknown, Values>(sql);
    return statement.values(...values)[0]?.[0];
  }

  runAll<T>(statements: Statements<T>): T {
    const steps = statements();
    let step = steps.next();
    while (step.done !== true) {
      step = steps.next(step.value.sql === "" ? [] : this.#rows(step.value));
    }
    return step.value;
  }

  #rows({ sql, values, isVaried = false }: SqlStatement): unknown[] {
    if (!isVaried) return this.all(sql, ...values);
    try {
      using statement = this.database.prepare<unknown, Values>(sql);
      return statement.all(...values);
    } catch (error) {
      throw toUnavailable(error, this.database.filename);
    }
  }

  transaction<T>(work: () => T): T {
    try {
      // IMMEDIATE takes the write lock first. A transaction that reads before it writes could have an outdated
      // snapshot.
      this.run("BEGIN IMMEDIATE");
      const result = work();
      this.options.beforeCommit?.();
      this.run("COMMIT");
      return result;
    } catch (error) {
      // A full disk ends the transaction; most other errors leave it open.
      if (this.database.inTransaction) this.run("ROLLBACK");
      throw toUnavailable(error, this.database.filename);
    }
  }

  /**
   * Runs a transaction that waits for other processes, and blocks the event loop for at most the busy timeout. `work`
   * must have no effect outside of the transaction, because it may run again.
   */
  transactionWhenUnlocked<T>(work: () => T): Promise<T> {
    return retryWhileBusy(() => this.transaction(work), this.options.writeWaitMs ?? 0);
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
    closeSync(openSync(path, "wx", 0o600));
    inheritDirectoryOwner(path);
  } catch {
    // The file exists, or SQLite will report why it cannot be opened.
  }
}

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
export function toUnavailable(error: unknown, path?: string): unknown {
  const code = primaryCode(error);
  if (code === undefined || !TRANSIENT_ERRORS.has(code)) return error;
  return new Unavailable(`SQLite: ${reasonOf(error, path)}`, { cause: error });
}

const DISK_ERRORS: ReadonlySet<number | undefined> = new Set([8, 10, 14]);
/** With less free space, not even the files next to a database can be created. */
const LITTLE_SPACE_BYTES = 128 * 1024;

/** Names a full disk and a read-only file system, which SQLite often reports as "disk I/O error". */
function reasonOf(error: unknown, path?: string): string {
  const code = primaryCode(error);
  if (code === FULL) return "the disk is full";
  const problem = path !== undefined && DISK_ERRORS.has(code) ? diskProblem(dirname(path)) : undefined;
  return problem ?? messageOf(error);
}

/** Makes an error that names the file. It omits the error of SQLite if the disk is full or read-only. */
export function failureOf(task: string, path: string, failure: unknown): Error {
  const error = failure instanceof Unavailable ? failure.cause : failure;
  const reason = reasonOf(error, path);
  const isNamed = primaryCode(error) !== undefined && error instanceof Error && reason !== error.message;
  return new Error(`cannot ${task} ${path}: ${reason}`, isNamed ? {} : { cause: error });
}

function diskProblem(directory: string): string | undefined {
  try {
    accessSync(directory, constants.W_OK);
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize < LITTLE_SPACE_BYTES ? "the disk is full" : undefined;
  } catch (error) {
    const isReadOnly = error instanceof Error && "code" in error && error.code === "EROFS";
    return isReadOnly ? `the file system of ${directory} is read-only` : undefined;
  }
}

/** Whether another process held the lock. Nothing has been written in that case. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error instanceof Unavailable ? error.cause : error) === BUSY;
}

/**
 * Repeats an attempt at short random intervals while another process holds the lock. A busy server leaves the lock free
 * for less than 1 ms at a time. SQLite's own busy handler waits up to 100 ms between attempts, and can miss those
 * moments for seconds.
 */
async function retryWhileBusy<T>(attempt: () => T, maxMs: number): Promise<T> {
  const deadline = scheduler.now() + maxMs;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || scheduler.now() >= deadline) throw toUnavailable(error);
      await scheduler.sleep(2 * scheduler.random());
    }
  }
}

const CHECK_EVERY_MS = 500;

export interface RescueOptions {
  /** The file that the data is copied to. */
  readonly to: string;
  /** Called after a rescue. It can call `watch` again with a connection to the rescued files. */
  readonly onRescue: () => void;
  /** Called after the first failure. Later attempts follow. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Watches the files of an open database. If they are deleted or replaced, whatever SQLite commits to them is lost in
 * the end.
 */
export class OpenFiles {
  /** The identities of the database and its log when they were opened. */
  #identities: readonly string[] = [];
  #rescue = (): void => {};
  #timer: ScheduledTimer | undefined;

  constructor(private readonly path: string) {}

  /**
   * Begins to watch the files of a connection. Within a second after they are lost, the rescue copies what the
   * connection has.
   */
  watch(connection: Connection, rescue: RescueOptions | undefined): void {
    this.#identities = this.#current();
    if (rescue === undefined) return;
    const failures = new FailureReporter(rescue.onFailure);
    this.#rescue = () => {
      if (!this.#areLost()) return;
      try {
        copyDurably(connection, rescue.to);
        // This log would damage a database that has replaced this one.
        if (this.#current()[1] === this.#identities[1]) removeLog(this.path);
        const once = this.#rescue;
        rescue.onRescue();
        if (this.#rescue === once) this.#rescue = () => {};
      } catch (error) {
        failures.failed(error);
      }
    };
    this.#timer ??= scheduler.setInterval(this.rescueIfLost, CHECK_EVERY_MS);
    this.#timer.unref();
  }

  readonly rescueIfLost = (): void => this.#rescue();

  /** Throws if the files are lost. It is called before each commit and takes 7 µs. */
  readonly check = (): void => {
    if (this.#areLost()) throw new Unavailable(`${this.path} was deleted or replaced`);
  };

  stop(): void {
    this.#timer?.close();
    this.#rescue();
  }

  #areLost(): boolean {
    const now = this.#current();
    return this.#identities.some((identity, i) => identity !== now[i]);
  }

  #current(): readonly string[] {
    try {
      return [this.path, `${this.path}-wal`].map(identityOf);
    } catch {
      // The files are unreadable, for example without permission, so they count as unchanged.
      return this.#identities;
    }
  }
}

function identityOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return `${stats?.dev}:${stats?.ino}`;
}

function copyDurably(connection: Connection, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  const partial = `${to}.partial`;
  removeDatabase(partial);
  createDatabaseFile(partial);
  connection.value("VACUUM INTO ?", partial);
  publishDatabase(partial, to);
}

export function sqliteDatabase(connection: Connection): SqlDatabase {
  return {
    dialect: SQLITE_DIALECT,
    read: (statements) => connection.runAll(statements),
    write: (statements) => connection.transactionWhenUnlocked(() => connection.runAll(statements)),
  };
}

/**
 * Uses `json_object` where it can: a page takes 12 µs instead of the 14 µs of `concat`. It cannot omit a member, so
 * `concat` writes the rows that have some of the optional members. The first member is never optional.
 */
function jsonObject(members: readonly JsonMember[]): string {
  const required = members.filter(({ isOptional }) => !isOptional);
  const optional = members.filter(({ isOptional }) => isOptional);
  if (optional.length === 0) return requiredJson(members);
  const everyOptional = (condition: string) =>
    optional.map(({ column }) => `${column} ${condition}`).join(" AND ");
  const parts = members.map(({ name, column, kind }, i) => {
    // The JSON of a text is never null without quotes.
    const value = kind === "text" ? `nullif(json_quote(${column}), 'null')` : column;
    const quote = kind === "choice" ? '"' : "";
    return `'${i === 0 ? "{" : ","}"${name}":${quote}' || ${value}${quote && ` || '${quote}'`}`;
  });
  return `CASE WHEN ${everyOptional("IS NOT NULL")} THEN ${requiredJson(members)}
    WHEN ${everyOptional("IS NULL")} THEN ${requiredJson(required)}
    ELSE concat(${parts.join(", ")}, '}') END`;
}

function requiredJson(members: readonly JsonMember[]): string {
  return `json_object(${members.map(({ name, column }) => `'${name}', ${column}`).join(", ")})`;
}

export function insertInto(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
}

export const SQLITE_DIALECT: Dialect = {
  comparesRows: false,
  timeline: "0",
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  given(columns, parameter = "?") {
    const values = Object.keys(columns).map((column, i) => `value ->> ${i} AS ${column}`);
    return `(SELECT key AS place, ${values.join(", ")} FROM jsonb_each(${parameter})) AS given`;
  },
  withoutCase: (column) => `${column} COLLATE NOCASE`,
  bytewise: (column) => column,
  like: (column, parameter) => `${column} LIKE ${parameter} ESCAPE '\\'`,
  matches: (column, parameter) => `${column} GLOB ${parameter}`,
  pattern(characters, isPart) {
    const classes = characters.map(globOf).join("");
    return isPart ? `*${classes}*` : classes;
  },
  labels: "json_each(labels)",
  insert: (table, columns) => `${insertInto(table, columns)} RETURNING id`,
  jsonObject,
  // A transaction already holds the lock of the whole database.
  lockIds: () => "",
  lockTable: () => "",
  lockRows: () => "",
  indexedBy: (index) => ` INDEXED BY ${index}`,
  explicitIds: "",
  deleteFirst: ({ table, where, order }) => `DELETE FROM ${table} WHERE (${order}) IN
    (SELECT ${order} FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT +?) RETURNING 1`,
  addedOperations: `json_patch(stored.operations, (SELECT json_group_object(key, json_array(
    (value ->> 0) + coalesce(stored.operations ->> ('$.' || key || '[0]'), 0),
    (value ->> 1) + coalesce(stored.operations ->> ('$.' || key || '[1]'), 0)
  )) FROM jsonb_each(excluded.operations)))`,
};

function globOf(cases: readonly string[]): string {
  const text = cases.join("");
  return cases.length > 1 || /[*?[]/.test(text) ? `[${text}]` : text;
}
