import type { SQL } from "bun";
import { Unavailable } from "../../contract/errors.ts";
import { CircuitBreaker, type CircuitBreakerOptions } from "./circuit-breaker.ts";
import { QueryTimeout } from "./query-timeout.ts";
import { asFault, isAnswer, Late, meansDown } from "./postgres-errors.ts";

export interface ConnectionPoolOptions extends CircuitBreakerOptions {
  readonly connect: () => SQL;
  /** Queries under way or waiting for a connection; past it the next one is turned away at once. */
  readonly maxWaiting: number;
  readonly deadlineMs: number;
}

/**
 * A small pool with a bounded queue in front, a deadline on everything and a breaker. The deadline is our own, because
 * a server that is frozen leaves a query waiting for ever and `cancel()` is of no help; the pool is thrown away then.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #breaker: CircuitBreaker;
  #sql: SQL;
  #waiting = 0;
  #answeredAt = -Infinity;
  #idle = Promise.withResolvers<void>();
  #closed = false;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#sql = options.connect();
    this.#idle.resolve();
    this.#breaker = new CircuitBreaker({
      ...options,
      onTurn: (turn) => {
        if (turn.state === "down") this.#startAfresh();
        options.onTurn(turn);
      },
    });
  }

  run<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#attend(this.#options.deadlineMs, (sql) => work(sql));
  }

  /** All of it or nothing, on a connection of its own: half of the time to get one, half to be done. */
  transaction<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    const halfMs = this.#options.deadlineMs / 2;
    let hasBegun = false;
    // What `begin` gives is what `work` gives; its type allows for arrays of queries too.
    const begin = (sql: SQL, deadline: QueryTimeout) =>
      sql.begin((tx) => {
        deadline.renew(halfMs);
        hasBegun = true;
        return work(tx);
      }) as Promise<T>;
    return this.#attend(halfMs, begin, () => !hasBegun && this.#isAnswering());
  }

  /** `isMerelyBusy` says, of work that took too long, that no conclusions are to be drawn from it. */
  async #attend<T>(
    ms: number,
    work: (sql: SQL, deadline: QueryTimeout) => Promise<T>,
    isMerelyBusy = () => false,
  ): Promise<T> {
    this.#decide();
    const deadline = new QueryTimeout(ms);
    try {
      const result = await deadline.race(work(this.#sql, deadline));
      this.#answeredAt = performance.now();
      return result;
    } catch (error) {
      if (isAnswer(error)) this.#answeredAt = performance.now();
      if (meansDown(error) && !(error instanceof Late && isMerelyBusy())) this.#breaker.trip(error);
      throw asFault(error);
    } finally {
      deadline.end();
      if (--this.#waiting === 0) this.#idle.resolve();
    }
  }

  /** The server seems to be gone. A pool that is getting answers knows better. */
  suspect(cause: unknown): void {
    if (!this.#closed && !this.#isAnswering()) this.#breaker.trip(cause);
  }

  /** Those that have a connection get their answers: who waits for one merely has too many before him. */
  #isAnswering(): boolean {
    return performance.now() - this.#answeredAt < this.#options.deadlineMs / 2;
  }

  /** Turns new work away, and waits for what was taken on; its deadlines bound the wait. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#idle.promise;
    this.#breaker.close();
    await this.#sql.close({ timeout: 0 });
  }

  #decide(): void {
    if (this.#closed) throw new Unavailable("the store is closed");
    this.#breaker.check();
    if (this.#waiting >= this.#options.maxWaiting) {
      throw new Unavailable(`${this.#waiting} queries are waiting for PostgreSQL already`);
    }
    if (this.#waiting++ === 0) this.#idle = Promise.withResolvers();
  }

  /** Everything that is under way fails; the connections of the new pool are opened when they are needed. */
  #startAfresh(): void {
    void this.#sql.close({ timeout: 0 });
    this.#sql = this.#options.connect();
  }
}
