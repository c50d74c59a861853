import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";
import { giveToDirectoryOwner } from "./durable-files.ts";
import type { SqlQuery } from "../dialect.ts";
import { isBusy, toUnavailable, translateErrors } from "./errors.ts";

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

  /** Prepares a statement whose integers are below 2^53 and read as numbers, which is faster. */
  prepareNumbers<Row, Params extends SQLQueryBindings[]>(sql: string): Statement<Row, Params> {
    return this.prepare<Row, Params>(sql).safeIntegers(false);
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

  /** Runs a statement once whose text depends on what is asked for. */
  query<Row>({ sql, values }: SqlQuery): Row[] {
    return translateErrors(() => {
      using statement = this.database.prepare<Row, SQLQueryBindings[]>(sql);
      return statement.all(...values);
    });
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
