import type { SQL } from "bun";
import { Overloaded, Unavailable } from "../../api/errors.ts";
import type { StateChange } from "../../domain/ports.ts";
import {
  connect,
  type ConnectOptions,
  explained,
  isFromServer,
  isLocked,
  isServerDown,
  QueryTimeout,
  QueryTimeoutError,
  type Timeouts,
  toUnavailable,
} from "./connection.ts";
import type { Primary } from "./primary.ts";
import { type ScheduledTimer, scheduler } from "../../event-loop.ts";

export interface PoolsOptions {
  /** The schema of the tables; by default the server's. */
  readonly schema?: string;
  /** The longest that a query or a transaction is waited for. */
  readonly timeoutMs?: number;
  /** Queries that can wait for a connection, in each pool; the next one is rejected at once. */
  readonly maxQueued?: number;
  readonly probeEveryMs?: number;
  readonly onStateChange?: (change: StateChange) => void;
  /** Is called after each query and each transaction that the server responded to. */
  readonly onResponse?: ((ms: number) => void) | undefined;
  /** The time by which idempotency records expire, if it is earlier than that of a write. */
  readonly retentionNow?: () => number;
}

/** Queries are pipelined, so few connections are fastest. */
const READ_CONNECTIONS = 2;
/** One batch of creates runs at a time. */
const CREATE_CONNECTIONS = 1;
/** Each transaction occupies a connection. */
const ORDER_CONNECTIONS = 2;
/** Those of operators and of the usage history are few. */
const WRITE_CONNECTIONS = 1;
/** Anybody can cause lookups of keys; an instance runs few of them at a time. */
const LOOKUP_CONNECTIONS = 1;

/**
 * A pool each for reads, for creating pets, for orders, for all other writes and for looking up keys. Reads do not wait
 * behind a write that waits for a lock, nothing waits behind orders, and nothing behind unknown keys. While commits
 * fail (a disk that stalls, a missing replica), reads continue.
 */
export class Pools {
  readonly reads: ConnectionPool;
  readonly creates: ConnectionPool;
  readonly orders: ConnectionPool;
  readonly writes: ConnectionPool;
  readonly lookups: ConnectionPool;
  readonly rows = new RowLocks(this);
  readonly timeoutMs: number;
  readonly maxQueued: number;
  readonly retentionNow: (() => number) | undefined;
  readonly #onStateChange: (change: StateChange) => void;
  #poolsDown = 0;

  constructor(primary: Primary, options: PoolsOptions = {}) {
    const { timeoutMs = 2_000, maxQueued = 4_096, probeEveryMs = 200, onStateChange = () => {} } = options;
    this.timeoutMs = timeoutMs;
    this.maxQueued = maxQueued;
    this.retentionNow = options.retentionNow;
    this.#onStateChange = onStateChange;
    const common = { ...timeoutsWithin(timeoutMs), schema: options.schema };
    const pool = (own: Pick<ConnectOptions, "maxConnections"> & Partial<Timeouts>) =>
      new ConnectionPool({
        connect: () => connect(primary.url, { ...common, ...own }),
        probe: () => this.#followPrimary(primary, { ...common, maxConnections: 1 }),
        probeEveryMs,
        maxQueued,
        timeoutMs,
        onResponse: options.onResponse,
        onStateChange: (change) => this.#reportStateChange(change),
        onProbeFailure: (cause) => this.#reportUnreachable(cause),
      });
    this.reads = pool({ maxConnections: READ_CONNECTIONS });
    // Creates wait for a single lock, that of the next identifier, which can take long when many instances create.
    this.creates = pool({ maxConnections: CREATE_CONNECTIONS, lockMs: Math.ceil(timeoutMs * 0.375) });
    this.orders = pool({ maxConnections: ORDER_CONNECTIONS });
    this.writes = pool({ maxConnections: WRITE_CONNECTIONS });
    this.lookups = pool({ maxConnections: LOOKUP_CONNECTIONS });
  }

  get #all(): readonly ConnectionPool[] {
    return [this.reads, this.creates, this.orders, this.writes, this.lookups];
  }

  /** Queries that run or wait for a connection. */
  get queueLength(): number {
    return this.#all.reduce((sum, pool) => sum + pool.queueLength, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((pool) => pool.close()));
  }

  /** All pools use the same server, so that no read is older than a write. */
  async #followPrimary(primary: Primary, options: ConnectOptions): Promise<void> {
    const before = primary.url;
    await primary.find(options);
    if (primary.url !== before) for (const pool of this.#all) pool.replaceConnections();
  }

  /** A failed probe of one pool spares the queries of the others the wait for their own timeout. */
  #reportUnreachable(cause: unknown): void {
    if (isFromServer(cause)) return;
    for (const pool of this.#all) pool.reportUnreachable(cause);
  }

  /** Reports "down" with the first pool and "up" with the last. */
  #reportStateChange(change: StateChange): void {
    this.#poolsDown += change.state === "down" ? 1 : -1;
    if (this.#poolsDown === (change.state === "down" ? 1 : 0)) this.#onStateChange(change);
  }
}

/** The server's limits are shorter than the client's, so that a slow statement does not look like a dead server. */
function timeoutsWithin(timeoutMs: number): Timeouts {
  return {
    connectMs: timeoutMs / 2,
    statementMs: Math.ceil(timeoutMs / 2),
    // An order waits for up to three locks, one after the other, within half of the timeout.
    lockMs: Math.ceil(timeoutMs / 8),
    idleInTransactionMs: Math.ceil(timeoutMs / 4),
  };
}

interface ConnectionPoolOptions extends CircuitBreakerOptions {
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
        if (change.state === "down") this.replaceConnections();
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
    const startedAt = scheduler.now();
    try {
      const result = await timeout.race(work(this.#sql, timeout));
      this.#responded(startedAt);
      return result;
    } catch (error) {
      if (isFromServer(error)) this.#responded(startedAt);
      const isDown = isServerDown(error) && !(error instanceof QueryTimeoutError && isOverloaded());
      if (isDown) this.#breaker.open(explained(error));
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
    this.#respondedAt = scheduler.now();
    this.#options.onResponse?.(this.#respondedAt - startedAt);
  }

  #hasRespondedRecently(): boolean {
    return scheduler.now() - this.#respondedAt < this.#options.timeoutMs / 2;
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
  replaceConnections(): void {
    void this.#sql.close({ timeout: 0 });
    this.#sql = this.#options.connect();
  }
}

const LOCK_RETRY_MS = 10;

/** Transactions that lock rows with NOWAIT: they wait for a row here, where they hold nothing that others need. */
class RowLocks {
  /** The end of the last transaction of each row. They take turns, so that one at a time asks for the lock. */
  readonly #ends = new Map<string, Promise<void>>();
  #queued = 0;

  constructor(private readonly pools: Pools) {}

  async transaction<T>(row: string, work: (sql: SQL) => Promise<T>): Promise<T> {
    const { orders, maxQueued, timeoutMs } = this.pools;
    if (this.#queued >= maxQueued) throw new Overloaded(`${maxQueued} writes wait for locked rows`);
    const deadline = scheduler.now() + timeoutMs / 2;
    const [earlier, end] = [this.#ends.get(row), Promise.withResolvers<void>()];
    this.#ends.set(row, end.promise);
    this.#queued++;
    try {
      await earlier;
      while (scheduler.now() <= deadline) {
        try {
          return await orders.transaction(work);
        } catch (error) {
          if (!(error instanceof Unavailable && isLocked(error.cause))) throw error;
        }
        await scheduler.sleep(LOCK_RETRY_MS);
      }
      throw new Unavailable(`the ${row} is locked`);
    } finally {
      this.#queued--;
      if (this.#ends.get(row) === end.promise) this.#ends.delete(row);
      end.resolve();
    }
  }
}

interface CircuitBreakerOptions {
  /** Resolves when the server can be used, rejects when it cannot. It must end in bounded time. */
  readonly probe: () => Promise<void>;
  readonly probeEveryMs: number;
  readonly onStateChange: (change: StateChange) => void;
  readonly onProbeFailure: (cause: unknown) => void;
}

/** Once the server is down, requests fail at once instead of waiting for it, until a probe succeeds. */
class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #outage: { readonly since: number; readonly cause: unknown } | undefined;
  #timer: ScheduledTimer | undefined;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  throwIfOpen(): void {
    if (this.#outage === undefined) return;
    throw new Unavailable("PostgreSQL is down", { cause: this.#outage.cause });
  }

  /** The first of many concurrent calls counts. */
  open(cause: unknown): void {
    if (this.#outage !== undefined) return;
    this.#outage = { since: scheduler.now(), cause };
    this.#options.onStateChange({ state: "down", cause });
    void this.#probe(this.#outage.since);
  }

  /** Stops probing. */
  stop(): void {
    this.#outage = undefined;
    this.#timer?.close();
  }

  async #probe(since: number): Promise<void> {
    const failure = await this.#options.probe().then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    );
    if (this.#outage === undefined) return;
    if (failure === undefined) {
      this.#outage = undefined;
      this.#options.onStateChange({ state: "up", afterMs: Math.round(scheduler.now() - since) });
    } else {
      this.#timer = scheduler.setTimeout(() => void this.#probe(since), this.#options.probeEveryMs);
      this.#timer.unref();
      this.#options.onProbeFailure(failure.cause);
    }
  }
}
