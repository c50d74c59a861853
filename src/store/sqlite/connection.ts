import { type Changes, type Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { Unavailable } from "../../api/errors.ts";
import type { Statement as SqlStatement, Statements } from "../sql/steps.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import { isBusy, sqliteUnavailable } from "./errors.ts";
import { PAUSE_MS } from "./waits.ts";

type Values = SQLQueryBindings[];

interface ConnectionOptions {
  /** Called before each commit. It can throw, which rolls the transaction back. */
  readonly beforeCommit?: () => void;
  /**
   * How integers are read: as bigint, or as number, which is faster, from a database that has none above 2^53.
   */
  readonly integers?: "number";
}

/**
 * A connection to a database. A statement is prepared at its first use and kept for the lifetime of the connection; one
 * whose text varies is prepared each time.
 */
export class Connection {
  readonly #statements = new Map<string, Statement<unknown, Values>>();
  #isPinned = false;

  constructor(
    private readonly database: Database,
    private readonly options: ConnectionOptions = {},
  ) {}

  /** Keeps what is read at the last commit until `unpin`. */
  pin(): void {
    this.run("BEGIN");
    try {
      // The snapshot is that of the first read.
      this.get("SELECT 1 FROM sqlite_schema LIMIT 1");
      this.#isPinned = true;
    } catch (error) {
      this.unpin();
      throw error;
    }
  }

  unpin(): void {
    this.#isPinned = false;
    if (this.database.inTransaction) this.run("COMMIT");
  }

  /** The number of rows that this connection has written. */
  get rowsWritten(): number {
    return Number(this.get<{ count: bigint | number }>("SELECT total_changes() AS count")?.count);
  }

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
    this.#checkPin();
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#prepare(sql);
      this.#statements.set(sql, statement);
    }
    // The rows have the columns that the statement selects.
    return statement as Statement<Row, Values>;
  }

  /** An error of the disk ends the transaction of a read, after which reads would see the newest commit. */
  #checkPin(): void {
    if (this.#isPinned && !this.database.inTransaction)
      throw new Unavailable("SQLite: a read has failed; reads go on when the disk has what was written");
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
      this.#checkPin();
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
   * must have no effect outside of the transaction, because it may run again. `waitMs` is how long it waits for the
   * write lock, in addition to the busy timeout.
   */
  transactionWhenUnlocked<T>(work: () => T, waitMs: number): Promise<T> {
    return retryWhileBusy(() => this.transaction(work), waitMs);
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
