import { type Changes, constants, type Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";
import { giveToDirectoryOwner } from "./durable-files.ts";
import type { SqlQuery } from "../dialect.ts";
import { retryWhileBusy, toUnavailable } from "./errors.ts";

type Values = SQLQueryBindings[];

/**
 * A database and its transactions. A statement is prepared at its first use, for the lifetime of the connection; one
 * whose text can be any of many is a `query`.
 */
export class Connection {
  readonly #statements = new Map<string, Statement<unknown, Values>>();

  /**
   * `writeWaitMs`: how long `transactionWhenUnlocked` waits for the write lock, in addition to the busy timeout.
   * `beforeCommit` can throw.
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

  /** The first row. */
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
    // Its rows have what it selects.
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

  /** Runs a statement once whose text depends on what is asked for. */
  query<Row>({ sql, values }: SqlQuery): Row[] {
    try {
      using statement = this.database.prepare<Row, Values>(sql);
      return statement.all(...values);
    } catch (error) {
      throw toUnavailable(error, this.database.filename);
    }
  }

  transaction<T>(work: () => T): T {
    try {
      // IMMEDIATE takes the write lock first: a transaction that reads before it writes can have an outdated snapshot.
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
   * A transaction that waits for other processes, and blocks the event loop for the busy timeout at most. `work` has
   * no effect outside of the transaction, because it may run again.
   */
  transactionWhenUnlocked<T>(work: () => T): Promise<T> {
    return retryWhileBusy(() => this.transaction(work), this.options.writeWaitMs ?? 0);
  }

  /** `true` finalizes the statements too; an open statement keeps the files open until it is garbage-collected. */
  close(): void {
    this.database.close(true);
  }
}

/** Closing the database leaves its log and shared memory: they could not be created on a disk that is full by then. */
export function keepFiles(database: Database): void {
  database.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
}

/**
 * Creates an empty file that only its owner can read, unless the file exists. SQLite fills it, and gives its -wal and
 * -shm files the same mode and owner. An existing file is not even opened: closing it would drop the locks of this
 * process on it.
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
    giveToDirectoryOwner(path);
  } catch {
    // It exists, or SQLite reports why it cannot be opened.
  }
}
