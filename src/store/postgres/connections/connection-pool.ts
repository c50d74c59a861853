import type { SQL } from "bun";
import { Overloaded, Unavailable } from "../../../api/errors.ts";
import { CircuitBreaker, type CircuitBreakerOptions } from "./circuit-breaker.ts";
import { isFromServer, isServerDown, toUnavailable } from "../postgres-errors.ts";
import { QueryTimeout, QueryTimeoutError } from "./query-timeout.ts";

export interface ConnectionPoolOptions extends CircuitBreakerOptions {
  readonly connect: () => SQL;
  /** Queries that run or wait for a connection; the next one is rejected at once. */
  readonly maxQueued: number;
  readonly timeoutMs: number;
  /** Is called after each query and each transaction that the server responded to. */
  readonly onResponse?: ((ms: number) => void) | undefined;
}

/**
 * A small pool with a bounded queue, a timeout on every query, and a circuit breaker. The timeout is the client's own,
 * because a frozen server enforces none and does not respond to `cancel()`. After a timeout the pool is replaced.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #breaker: CircuitBreaker;
  #sql: SQL;
  #queued = 0;
  #respondedAt = -Infinity;
  #idle = Promise.withResolvers<void>();
  #closed = false;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#sql = options.connect();
    this.#idle.resolve();
    this.#breaker = new CircuitBreaker({
      ...options,
      onStateChange: (change) => {
        if (change.state === "down") this.#replaceConnections();
        options.onStateChange(change);
      },
    });
  }

  /** Queries that run or wait for a connection. */
  get queueLength(): number {
    return this.#queued;
  }

  query<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#run(this.#options.timeoutMs, (sql) => work(sql));
  }

  /** Half of the timeout is for getting a connection, half for the transaction. */
  transaction<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    const halfMs = this.#options.timeoutMs / 2;
    let hasBegun = false;
    // `begin` returns what `work` returns; its type allows for arrays of queries too.
    const begin = (sql: SQL, timeout: QueryTimeout) =>
      sql.begin((tx) => {
        timeout.restart(halfMs);
        hasBegun = true;
        return work(tx);
      }) as Promise<T>;
    return this.#run(halfMs, begin, () => !hasBegun && this.#hasRespondedRecently());
  }

  /** `isOverloaded`: whether a timeout is due to the number of queries and says nothing about the server. */
  async #run<T>(
    ms: number,
    work: (sql: SQL, timeout: QueryTimeout) => Promise<T>,
    isOverloaded = () => false,
  ): Promise<T> {
    this.#enqueue();
    const timeout = new QueryTimeout(ms);
    const startedAt = performance.now();
    try {
      const result = await timeout.race(work(this.#sql, timeout));
      this.#responded(startedAt);
      return result;
    } catch (error) {
      if (isFromServer(error)) this.#responded(startedAt);
      const isDown = isServerDown(error) && !(error instanceof QueryTimeoutError && isOverloaded());
      if (isDown) this.#breaker.open(error);
      throw toUnavailable(error);
    } finally {
      timeout.clear();
      if (--this.#queued === 0) this.#idle.resolve();
    }
  }

  /** Another pool cannot reach the server. Ignored while this one gets responses. */
  reportUnreachable(cause: unknown): void {
    if (!this.#closed && !this.#hasRespondedRecently()) this.#breaker.open(cause);
  }

  #responded(startedAt: number): void {
    this.#respondedAt = performance.now();
    this.#options.onResponse?.(this.#respondedAt - startedAt);
  }

  #hasRespondedRecently(): boolean {
    return performance.now() - this.#respondedAt < this.#options.timeoutMs / 2;
  }

  /** Rejects new queries, and waits for the accepted ones; their timeouts bound the wait. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#idle.promise;
    this.#breaker.stop();
    await this.#sql.close({ timeout: 0 });
  }

  #enqueue(): void {
    if (this.#closed) throw new Unavailable("the store is closed");
    this.#breaker.throwIfOpen();
    if (this.#queued >= this.#options.maxQueued) {
      throw new Overloaded(`the queue for PostgreSQL is full (${this.#queued} queries)`);
    }
    if (this.#queued++ === 0) this.#idle = Promise.withResolvers();
  }

  /** Running queries fail. The new connections are opened when they are first used. */
  #replaceConnections(): void {
    void this.#sql.close({ timeout: 0 });
    this.#sql = this.#options.connect();
  }
}
