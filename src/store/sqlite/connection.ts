import { type Changes, type Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
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
