import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import { asFault, isBusy } from "./sqlite-errors.ts";

/** A database, the statements prepared on it, and transactions. */
export class Connection {
  readonly #begin: Statement<unknown, []>;
  readonly #commit: Statement<unknown, []>;
  readonly #rollback: Statement<unknown, []>;

  /** `writeWaitMs`: how long a transaction waits for its turn to begin, beyond what SQLite waits by itself. */
  constructor(
    private readonly database: Database,
    private readonly writeWaitMs = 0,
  ) {
    // IMMEDIATE, because a transaction that reads first and writes later can find itself on an outdated snapshot.
    this.#begin = this.prepare("BEGIN IMMEDIATE");
    this.#commit = this.prepare("COMMIT");
    this.#rollback = this.prepare("ROLLBACK");
  }

  /** A statement that is kept until the connection closes. */
  prepare<Row, Params extends SQLQueryBindings[]>(sql: string): Statement<Row, Params> {
    return this.database.prepare<Row, SQLQueryBindings[]>(sql);
  }

  /** Any number of statements, once. */
  run(sql: string): void {
    this.database.run(sql);
  }

  /** The single value that a statement answers, once. */
  value(sql: string, ...params: SQLQueryBindings[]): unknown {
    using statement = this.database.prepare<unknown, SQLQueryBindings[]>(sql);
    return statement.values(...params)[0]?.[0];
  }

  /** All of it or nothing. */
  transaction<T>(work: () => T): T {
    try {
      this.#beginInTurn();
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      // A full disk ends the transaction by itself; most other errors leave it open.
      if (this.database.inTransaction) this.#rollback.run();
      throw asFault(error);
    }
  }

  /**
   * SQLite waits in steps that grow to 100 ms, while a server at work leaves gaps of fractions of a millisecond: a
   * command that relied on it has been seen to find none in five seconds. Steps that stay short, and uneven, find
   * one soon.
   */
  #beginInTurn(): void {
    const deadline = performance.now() + this.writeWaitMs;
    for (;;) {
      try {
        this.#begin.run();
        return;
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadline) throw error;
        Bun.sleepSync(2 * Math.random());
      }
    }
  }

  /** `true` ends the statements too: one left alive keeps the files open until it is garbage-collected. */
  close(): void {
    this.database.close(true);
  }
}
