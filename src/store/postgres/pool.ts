import type { SQL } from "bun";
import { Overloaded, Unavailable } from "../../api/errors.ts";
import type { StateChange } from "../../domain/ports.ts";
import {
  connect,
  type ConnectOptions,
  withExplanation,
  isFromServer,
  isLocked,
  isServerDown,
  type Timeouts,
  toUnavailable,
} from "./connection.ts";
import type { Primary } from "./primary.ts";
import {
  DeadlineExceeded,
  repeat,
  type RepeatedWork,
  type ScheduledTimer,
  scheduler,
  withTimeout,
} from "../../runtime/event-loop.ts";

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
}

const ROW_RETRY_MS = 10;
/** How often other processes are asked whether they know of a later primary. */
const COMPARE_EVERY_MS = 1_000;
const MAX_COMPARISON_MS = 400;
/** A process whose last comparison is older may have stood still, and compares before it uses a result. */
const MAX_COMPARISON_AGE_MS = 1_500;

/**
 * A pool each for reads, for creating pets, for orders, for all other writes and for looking up keys. Reads do not wait
 * behind a write that waits for a lock, nothing waits behind orders, and nothing behind unknown keys. While commits
 * fail (a disk that stalls, a missing replica), reads continue.
 */
export class Pools {
  /** Queries are pipelined, so few connections are fastest. */
  readonly reads: ConnectionPool;
  /** One batch of creates runs at a time. */
  readonly creates: ConnectionPool;
  /** Each transaction occupies a connection. */
  readonly orders: ConnectionPool;
  /** Those of operators and of the usage history are few. */
  readonly writes: ConnectionPool;
  /** Anybody can cause lookups of keys; an instance runs few of them at a time. */
  readonly lookups: ConnectionPool;
  readonly timeoutMs: number;
  readonly maxQueued: number;
  readonly #all: readonly ConnectionPool[];
  #poolsDown = 0;
  /** The end of the last transaction of each row. They take turns, so that one at a time asks for the lock. */
  readonly #rowEnds = new Map<string, Promise<void>>();
  #rowsQueued = 0;
  readonly #comparing: RepeatedWork;
  readonly #primary: Primary;
  /** When the last comparison began, and the one that runs. */
  #comparedAt = scheduler.now();
  #comparison: Promise<void> | undefined;

  constructor(primary: Primary, options: PoolsOptions = {}) {
    const { timeoutMs = 2_000, maxQueued = 4_096, probeEveryMs = 200, onStateChange } = options;
    this.#primary = primary;
    this.timeoutMs = timeoutMs;
    this.maxQueued = maxQueued;
    const common = { ...timeoutsWithin(timeoutMs), schema: options.schema };
    const pool = (own: Pick<ConnectOptions, "maxConnections"> & Partial<Timeouts>) =>
      new ConnectionPool({
        connect: () => connect(primary.url, { ...common, ...own }),
        probe: () => this.#followPrimary(primary, { ...common, maxConnections: 1 }),
        confirm: () =>
          scheduler.now() - this.#comparedAt > MAX_COMPARISON_AGE_MS ? this.#compare() : undefined,
        probeEveryMs,
        maxQueued,
        timeoutMs,
        onResponse: options.onResponse,
        // Reports "down" with the first pool and "up" with the last.
        onStateChange: (change) => {
          this.#poolsDown += change.state === "down" ? 1 : -1;
          if (this.#poolsDown === (change.state === "down" ? 1 : 0)) onStateChange?.(change);
        },
        // It spares the queries of the other pools the wait for their own timeout.
        onProbeFailure: (cause) => {
          if (!isFromServer(cause)) for (const pool of this.#all) pool.reportUnreachable(cause);
        },
      });
    this.reads = pool({ maxConnections: 2 });
    // Creates wait for a single lock, that of the next identifier, which can take long when many instances create.
    this.creates = pool({ maxConnections: 1, lockMs: Math.ceil(timeoutMs * 0.375) });
    this.orders = pool({ maxConnections: 2 });
    this.writes = pool({ maxConnections: 1 });
    this.lookups = pool({ maxConnections: 1 });
    this.#all = [this.reads, this.creates, this.orders, this.writes, this.lookups];
    this.#comparing = repeat(COMPARE_EVERY_MS, async () => {
      if (this.#poolsDown === 0) await this.#compare();
      return COMPARE_EVERY_MS;
    });
  }

  /** Queries that run or wait for a connection. */
  get queueLength(): number {
    return this.#all.reduce((sum, pool) => sum + pool.queueLength, 0);
  }

  async close(): Promise<void> {
    await this.#comparing.close();
    await Promise.all(this.#all.map((pool) => pool.close()));
  }

  /** Another process may have seen a promotion of which this one, whose connections work, knows nothing. */
  async #compare(): Promise<void> {
    const startedAt = scheduler.now();
    this.#comparison ??= this.#leaveReplaced().finally(() => {
      this.#comparison = undefined;
    });
    // An outage of Valkey delays no query.
    await Promise.race([this.#comparison, scheduler.sleep(MAX_COMPARISON_MS)]);
    this.#comparedAt = startedAt;
  }

  async #leaveReplaced(): Promise<void> {
    const cause = await this.#primary.findReplacement();
    if (cause) for (const pool of this.#all) pool.leave(cause);
  }

  /** All pools use the same server, so that no read is older than a write. */
  async #followPrimary(primary: Primary, options: ConnectOptions): Promise<void> {
    const before = primary.url;
    await primary.find(options);
    if (primary.url !== before) for (const pool of this.#all) pool.replaceConnections();
  }

  /** A transaction that locks rows with NOWAIT: it waits for a row here, where it holds nothing that others need. */
  async rowTransaction<T>(row: string, work: (sql: SQL) => Promise<T>): Promise<T> {
    if (this.#rowsQueued >= this.maxQueued) {
      throw new Overloaded(`${this.maxQueued} writes wait for locked rows`);
    }
    const deadline = scheduler.now() + this.timeoutMs / 2;
    const [earlier, end] = [this.#rowEnds.get(row), Promise.withResolvers<void>()];
    this.#rowEnds.set(row, end.promise);
    this.#rowsQueued++;
    try {
      await earlier;
      while (scheduler.now() <= deadline) {
        try {
          return await this.orders.transaction(work);
        } catch (error) {
          if (!(error instanceof Unavailable && isLocked(error.cause))) throw error;
        }
        await scheduler.sleep(ROW_RETRY_MS);
      }
      throw new Unavailable(`the ${row} is locked`);
    } finally {
      this.#rowsQueued--;
      if (this.#rowEnds.get(row) === end.promise) this.#rowEnds.delete(row);
      end.resolve();
    }
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

interface ConnectionPoolOptions extends Required<
  Pick<PoolsOptions, "timeoutMs" | "maxQueued" | "probeEveryMs" | "onStateChange" | "onResponse">
> {
  readonly connect: () => SQL;
  /** Resolves when the server can be used, rejects when it cannot. It must end in bounded time. */
  readonly probe: () => Promise<void>;
  readonly onProbeFailure: (cause: unknown) => void;
  /** If it is not certain that the server has not been replaced, looks; the pools leave one that has been. */
  readonly confirm: () => Promise<void> | undefined;
}

/**
 * A small pool with a bounded queue, a timeout on every query, and a circuit breaker: once the server is down, queries
 * fail at once instead of waiting for it, until a probe succeeds. The timeout is the client's own, because a frozen
 * server enforces none and does not respond to `cancel()`. After a timeout the connections are replaced.
 */
export class ConnectionPool {
  #sql: SQL;
  #queued = 0;
  #respondedAt = -Infinity;
  #idle = Promise.resolve();
  #onIdle = () => {};
  #closed = false;
  #outage: { readonly since: number; readonly cause: unknown } | undefined;
  #timer: ScheduledTimer | undefined;

  constructor(private readonly options: ConnectionPoolOptions) {
    this.#sql = options.connect();
  }

  /** Queries that run or wait for a connection. */
  get queueLength(): number {
    return this.#queued;
  }

  query<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#run((sql) => withTimeout(this.options.timeoutMs, work(sql)));
  }

  /** Half of the timeout is for getting a connection, half for the transaction. */
  transaction<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#run(async (sql) => {
      const halfMs = this.options.timeoutMs / 2;
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      let isLate = false;
      // `begin` returns what `work` returns; its type allows for arrays of queries too.
      const done = sql.begin((tx) => {
        if (isLate) throw new DeadlineExceeded("the transaction began after its timeout");
        begin();
        return work(tx);
      }) as Promise<T>;
      try {
        await withTimeout(halfMs, Promise.race([begun, done]));
      } catch (error) {
        isLate = true;
        // While others get responses, it is due to the number of queries and says nothing about the server.
        throw error instanceof DeadlineExceeded && this.#hasRespondedRecently()
          ? toUnavailable(error)
          : error;
      }
      return withTimeout(halfMs, done);
    });
  }

  async #run<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    this.#enqueue();
    const startedAt = scheduler.now();
    try {
      const sql = this.#sql;
      const result = await work(sql);
      this.#responded(startedAt);
      await this.options.confirm();
      // The server may have been replaced while this process stood still: what it has done since is lost.
      if (sql !== this.#sql) throw new Unavailable("the connections to PostgreSQL were replaced");
      return result;
    } catch (error) {
      if (isFromServer(error)) this.#responded(startedAt);
      if (isServerDown(error)) this.#open(withExplanation(error));
      throw toUnavailable(error);
    } finally {
      if (--this.#queued === 0) this.#onIdle();
    }
  }

  #enqueue(): void {
    if (this.#closed) throw new Unavailable("the store is closed");
    if (this.#outage) throw new Unavailable("PostgreSQL is down", { cause: this.#outage.cause });
    if (this.#queued >= this.options.maxQueued) {
      throw new Overloaded(`the queue for PostgreSQL is full (${this.#queued} queries)`);
    }
    if (this.#queued++ === 0)
      ({ promise: this.#idle, resolve: this.#onIdle } = Promise.withResolvers<void>());
  }

  #responded(startedAt: number): void {
    this.#respondedAt = scheduler.now();
    this.options.onResponse?.(this.#respondedAt - startedAt);
  }

  #hasRespondedRecently(): boolean {
    return scheduler.now() - this.#respondedAt < this.options.timeoutMs / 2;
  }

  /** Another pool cannot reach the server. Ignored while this one gets responses. */
  reportUnreachable(cause: unknown): void {
    if (!this.#closed && !this.#hasRespondedRecently()) this.#open(cause);
  }

  /** The server must not be used, though it responds. */
  leave(cause: unknown): void {
    if (!this.#closed) this.#open(cause);
  }

  /** The first of many concurrent calls counts. */
  #open(cause: unknown): void {
    if (this.#outage !== undefined) return;
    this.#outage = { since: scheduler.now(), cause };
    this.replaceConnections();
    this.options.onStateChange({ state: "down", cause });
    void this.#probe(this.#outage.since);
  }

  async #probe(since: number): Promise<void> {
    const { probe, probeEveryMs, onStateChange, onProbeFailure } = this.options;
    const failure = await probe().then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    );
    if (this.#outage === undefined) return;
    if (failure === undefined) {
      this.#outage = undefined;
      onStateChange({ state: "up", afterMs: Math.round(scheduler.now() - since) });
    } else {
      this.#timer = scheduler.setTimeout(() => void this.#probe(since), probeEveryMs);
      this.#timer.unref();
      onProbeFailure(failure.cause);
    }
  }

  /** Running queries fail. The new connections are opened when they are first used. */
  replaceConnections(): void {
    void this.#sql.close({ timeout: 0 });
    this.#sql = this.options.connect();
  }

  /** Rejects new queries, and waits for the accepted ones; their timeouts bound the wait. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#idle;
    this.#outage = undefined;
    this.#timer?.close();
    await this.#sql.close({ timeout: 0 });
  }
}
