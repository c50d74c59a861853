import type { ReservedSQL, SQL } from "bun";
import { OutcomeUnknown, Overloaded, Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import type { StateChange } from "../../domain/ports/stores.ts";
import { connect, type ConnectOptions, type Timeouts } from "./connection.ts";
import {
  hasIdled,
  isClosed,
  isFromServer,
  isLocked,
  isServerDown,
  postgresUnavailable,
  withExplanation,
} from "./errors.ts";
import type { Primary } from "./primary.ts";
import { readReplication } from "./replication.ts";
import { type StandbyChange, StandbyWatch } from "./standby-watch.ts";
import { MAX_OPERATOR_READ_MS } from "../sql/operator-read-queue.ts";
import { DeadlineExceeded, withTimeout } from "../../runtime/timeout.ts";
import { OutageCauses } from "../../runtime/outage-causes.ts";
import { repeat, type RepeatedWork } from "../../runtime/repeat.ts";
import { type ScheduledTimer, scheduler } from "../../runtime/scheduler.ts";

export interface PoolsOptions {
  /** The schema of the tables. The default is that of the server. */
  readonly schema?: string | undefined;
  /** The longest time that a query or a transaction may take. */
  readonly timeoutMs?: number;
  /** The longest time that a statement of a read of operators may take. */
  readonly operatorReadMs?: number;
  /** The time without such a read after which its connections close. */
  readonly operatorReadIdleSeconds?: number;
  /** The number of queries that may wait for a connection, in each pool. The next one is rejected at once. */
  readonly maxQueued?: number;
  readonly probeEveryMs?: number;
  readonly onStateChange?: (change: StateChange) => void;
  /** Called when commits begin to wait for a standby that is away, and when they no longer do. */
  readonly onStandbyChange?: ((change: StandbyChange) => void) | undefined;
  /** Called after each query and each transaction that the server responded to. */
  readonly onResponse?: ((ms: number) => void) | undefined;
}

const ROW_RETRY_MS = 10;
/** How often other processes are asked whether they know of a later primary. */
const COMPARE_EVERY_MS = 1_000;
const MAX_COMPARISON_MS = 400;
/**
 * The greatest age of a comparison with which a result is used. A process whose last comparison is older may have been
 * paused, so it compares again first.
 */
const MAX_COMPARISON_AGE_MS = 1_500;

/** The number of connections of each pool. */
const SIZES = {
  reads: 2,
  creates: 1,
  orders: 2,
  writes: 1,
  lookups: 1,
  limits: 1,
  operatorReads: 2,
} as const;
export const OPERATOR_READS = SIZES.operatorReads;

/** The greatest number of connections that a server opens. */
export const CONNECTIONS_PER_SERVER = Object.values(SIZES).reduce<number>((sum, size) => sum + size, 0);

/**
 * The pools of connections: one each for reads, for creating pets, for orders, for all other writes, for lookups of
 * keys, for rate limits, and for reads of operators. Reads do not wait behind a write that waits for a lock. Nothing
 * waits behind orders, behind unknown keys or behind what operators search or add up. While commits fail because a disk
 * stalls or a replica is missing, reads continue.
 */
export class Pools {
  /** Queries are pipelined, so a few connections are fastest. */
  readonly reads: ConnectionPool;
  /** One batch of creates runs at a time. */
  readonly creates: ConnectionPool;
  /** Each transaction occupies a connection. */
  readonly orders: ConnectionPool;
  /** These writes are few: they come from operators and from the usage history. */
  readonly writes: ConnectionPool;
  /** Anybody can cause lookups of keys, so a server runs few of them at a time. */
  readonly lookups: ConnectionPool;
  /** Every request needs a decision about its key, so a commit of these does not wait for the disk. */
  readonly limits: ConnectionPool;
  /** Lists, searches and sums of operators. Each occupies a connection, for longer than a client may wait. */
  readonly operatorReads: ConnectionPool;
  readonly timeoutMs: number;
  readonly maxQueued: number;
  readonly #all: readonly ConnectionPool[];
  #poolsDown = 0;
  readonly #causes: OutageCauses;
  /**
   * For each row, the end of its last transaction. Transactions of a row take turns, so that only one at a time asks
   * for the lock.
   */
  readonly #rowEnds = new Map<string, Promise<void>>();
  #rowsQueued = 0;
  readonly #comparing: RepeatedWork;
  readonly #standbys: StandbyWatch;
  readonly #primary: Primary;
  /** When the last comparison began. */
  #comparedAt = scheduler.now();
  #comparison: Promise<void> | undefined;

  constructor(primary: Primary, options: PoolsOptions = {}) {
    const { timeoutMs = 2_000, maxQueued = 4_096, probeEveryMs = 200, onStateChange } = options;
    const { operatorReadMs = MAX_OPERATOR_READ_MS, operatorReadIdleSeconds: idleSeconds = 30 } = options;
    this.#primary = primary;
    this.timeoutMs = timeoutMs;
    this.maxQueued = maxQueued;
    this.#causes = new OutageCauses((cause) => onStateChange?.({ state: "down", cause }));
    const common = { ...timeoutsWithin(timeoutMs), schema: options.schema };
    const pool = (
      own: Pick<ConnectOptions, "maxConnections" | "waitsForDisk" | "idleSeconds"> & Partial<Timeouts>,
      others: Partial<ConnectionPoolOptions> = {},
    ) =>
      new ConnectionPool({
        connect: () => connect(primary.url, { ...common, ...own }),
        probe: () => this.#followPrimary(primary, { ...common, maxConnections: 1 }),
        confirm: () =>
          scheduler.now() - this.#comparedAt > MAX_COMPARISON_AGE_MS ? this.#compare() : undefined,
        probeEveryMs,
        maxQueued,
        timeoutMs,
        onResponse: options.onResponse,
        // An outage lasts from when the first pool is down until the last one is up again.
        onStateChange: (change) => {
          this.#poolsDown += change.state === "down" ? 1 : -1;
          if (change.state === "down") this.#causes.report(withExplanation(change.cause));
          else if (this.#poolsDown === 0) {
            this.#causes.end();
            onStateChange?.(change);
          }
        },
        onProbeFailure: (cause) => {
          if (this.#poolsDown > 0) this.#causes.report(withExplanation(cause));
          // The queries of the other pools then do not have to wait for their own timeout.
          if (!isFromServer(cause)) for (const pool of this.#all) pool.reportUnreachable(cause);
        },
        ...others,
      });
    this.reads = pool({ maxConnections: SIZES.reads });
    this.#standbys = new StandbyWatch({
      read: () => this.reads.query(readReplication),
      onChange: options.onStandbyChange,
    });
    const writing = { waitsForStandby: () => this.#standbys.waits() };
    // All creates wait for one lock, that of the next identifier, which can take long when many servers create pets.
    const longLockMs = Math.ceil(timeoutMs * 0.375);
    this.creates = pool({ maxConnections: SIZES.creates, lockMs: longLockMs }, writing);
    this.orders = pool({ maxConnections: SIZES.orders }, writing);
    this.writes = pool({ maxConnections: SIZES.writes }, writing);
    this.lookups = pool({ maxConnections: SIZES.lookups });
    // A server that is paused holds its locks until its idle transaction is ended.
    const limits = { maxConnections: SIZES.limits, lockMs: longLockMs, waitsForDisk: false } as const;
    this.limits = pool(limits, writing);
    // Only a frozen server takes longer than its own limit. How long operators wait is not the latency of PostgreSQL.
    const slow = { timeoutMs: operatorReadMs + timeoutMs, onResponse: undefined };
    this.operatorReads = pool(
      { maxConnections: SIZES.operatorReads, statementMs: operatorReadMs, idleSeconds },
      slow,
    );
    const { reads, creates, orders, writes, lookups, operatorReads } = this;
    this.#all = [reads, creates, orders, writes, lookups, this.limits, operatorReads];
    this.#comparing = repeat(COMPARE_EVERY_MS, async () => {
      if (this.#poolsDown === 0) await this.#compare();
      return COMPARE_EVERY_MS;
    });
  }

  /** The number of queries that run or wait for a connection. */
  get queueLength(): number {
    return this.#all.reduce((sum, pool) => sum + pool.queueLength, 0);
  }

  async close(): Promise<void> {
    await this.#comparing.close();
    await this.#standbys.close();
    await Promise.all(this.#all.map((pool) => pool.close()));
  }

  /** Asks whether another process has seen a promotion, which working connections of this process do not show. */
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

  /** Finds the primary and makes all pools use it, so that no read is older than a write. */
  async #followPrimary(primary: Primary, options: ConnectOptions): Promise<void> {
    const before = primary.url;
    await primary.find(options);
    if (primary.url !== before) for (const pool of this.#all) pool.replaceConnections();
  }

  /**
   * Runs a transaction that locks rows with NOWAIT. If a row is locked, it waits here, where it holds nothing that
   * others need.
   */
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
      const reason = `the ${row} is locked`;
      throw new Unavailable((await this.#standbys.waits()) ? commitsWait(reason) : reason);
    } finally {
      this.#rowsQueued--;
      if (this.#rowEnds.get(row) === end.promise) this.#rowEnds.delete(row);
      end.resolve();
    }
  }
}

/**
 * The timeouts of the server. They are shorter than that of the client, so that a slow statement does not look like a
 * dead server.
 */
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
  /** Resolves when the server is usable, and rejects when it is not. It must end within a bounded time. */
  readonly probe: () => Promise<void>;
  readonly onProbeFailure: (cause: unknown) => void;
  /**
   * Asks whether the server has been replaced, unless that was ruled out shortly before. The pools leave such a server.
   */
  readonly confirm: () => Promise<void> | undefined;
  /** Resolves to whether commits wait for a standby. A pool that only reads has none to ask for. */
  readonly waitsForStandby?: () => Promise<boolean>;
}

/** A write that failed sooner was not waiting for a commit. */
const SHORT_WAIT_MS = 100;

/** The reason why a write failed while commits wait for a standby. */
function commitsWait(reason: string): string {
  return `commits wait for a synchronous standby (${reason})`;
}

/** The failure of a transaction that had begun and may have been committed. The cause says which. */
class LostResponse extends Error {
  constructor(cause: unknown) {
    super("no response to a transaction", { cause });
  }
}

/**
 * A small pool with a bounded queue, a timeout on every query, and a circuit breaker: once the server is down, queries
 * fail at once until a probe succeeds. The client enforces the timeout itself, because a frozen server neither enforces
 * one nor responds to `cancel()`. After a timeout the connections are replaced.
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

  /** The number of queries that run or wait for a connection. */
  get queueLength(): number {
    return this.#queued;
  }

  query<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    return this.#run((sql) => withTimeout(this.options.timeoutMs, work(sql)));
  }

  /** Runs a transaction. Half of the timeout is for getting a connection, and half for the transaction. */
  transaction<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    // `begin` returns what `work` returns; its type allows for arrays of queries too.
    return this.#onConnection((sql, run: (tx: SQL) => Promise<T>) => sql.begin(run) as Promise<T>, work);
  }

  /** Runs work that begins and ends a transaction itself, with the timeouts of a transaction. */
  onConnection<T>(work: (sql: ReservedSQL) => Promise<T>): Promise<T> {
    return this.#onConnection(async (sql, run: (reserved: ReservedSQL) => Promise<T>) => {
      const reserved = await sql.reserve();
      try {
        return await run(reserved);
      } finally {
        reserved.release();
      }
    }, work);
  }

  /**
   * Runs a transaction. If this process stands still in it, the server ends it so that its locks delay nobody. Nothing
   * of it was stored, so it is run again.
   */
  async #onConnection<T, Connection>(
    connect: (sql: SQL, run: (connection: Connection) => Promise<T>) => Promise<T>,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    return await this.#attempt(connect, work).catch((error: unknown) => {
      if (error instanceof Unavailable && hasIdled(error.cause)) return this.#attempt(connect, work);
      throw error;
    });
  }

  #attempt<T, Connection>(
    connect: (sql: SQL, run: (connection: Connection) => Promise<T>) => Promise<T>,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    return this.#run(async (sql) => {
      const halfMs = this.options.timeoutMs / 2;
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      let isLate = false;
      const done = connect(sql, (connection) => {
        if (isLate) throw new DeadlineExceeded("the transaction began after its timeout");
        begin();
        return work(connection);
      });
      try {
        await withTimeout(halfMs, Promise.race([begun, done]));
      } catch (error) {
        isLate = true;
        // While other queries get responses, the timeout is due to the number of queries, and the server is fine.
        throw error instanceof DeadlineExceeded && this.#hasRespondedRecently()
          ? postgresUnavailable(error)
          : error;
      }
      return withTimeout(halfMs, done).catch((error: unknown) => {
        throw isFromServer(error) ? error : new LostResponse(error);
      });
    });
  }

  async #run<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    this.#enqueue();
    const startedAt = scheduler.now();
    const sql = this.#sql;
    try {
      const result = await work(sql);
      this.#responded(startedAt);
      await this.options.confirm();
      // While this process was paused, the server may have been replaced. In that case its writes since then are lost.
      if (sql !== this.#sql) throw new OutcomeUnknown("the connections to PostgreSQL were replaced");
      return result;
    } catch (thrown) {
      const isLost = thrown instanceof LostResponse;
      const error = isLost ? thrown.cause : thrown;
      if (isFromServer(error)) this.#responded(startedAt);
      const isWaiting = await this.#waitsForStandby(error, startedAt);
      if (!isWaiting && isServerDown(error)) this.#open(withExplanation(error));
      else if (isWaiting && sql === this.#sql && !isFromServer(error)) this.replaceConnections();
      const cause = isWaiting
        ? new Unavailable(`PostgreSQL: ${commitsWait(messageOf(error))}`, { cause: error })
        : postgresUnavailable(error);
      throw isLost && cause instanceof Unavailable ? new OutcomeUnknown(messageOf(cause), { cause }) : cause;
    } finally {
      if (--this.#queued === 0) this.#onIdle();
    }
  }

  /** Whether the work failed because commits wait for a standby: its own one, or one that has its lock. */
  async #waitsForStandby(error: unknown, startedAt: number): Promise<boolean> {
    const hasWaited = scheduler.now() - startedAt > SHORT_WAIT_MS;
    const cause = error instanceof Unavailable ? error.cause : error;
    if (!hasWaited || !(cause instanceof DeadlineExceeded || isLocked(cause) || isClosed(cause)))
      return false;
    return (await this.options.waitsForStandby?.()) ?? false;
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

  /** Reports that another pool cannot reach the server. It has no effect while this pool gets responses. */
  reportUnreachable(cause: unknown): void {
    if (!this.#closed && !this.#hasRespondedRecently()) this.#open(cause);
  }

  /** Stops using a server that responds but must not be used. */
  leave(cause: unknown): void {
    if (!this.#closed) this.#open(cause);
  }

  /** Opens the circuit breaker. Of several concurrent calls, the first one counts. */
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

  /** Replaces the connections, so that running queries fail. The new ones are opened when they are first used. */
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
