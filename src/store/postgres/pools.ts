import { connect, type ConnectOptions, type Timeouts } from "./connection.ts";
import { ConnectionPool, type ConnectionPoolOptions } from "./connection-pool.ts";
import { isFromServer, withExplanation, isStartingOrStopping } from "./errors.ts";
import type { Primary } from "./primary.ts";
import { ReplacementWatch } from "./replacement-watch.ts";
import { readReplication } from "./replication.ts";
import { RowTransactions } from "./row-transactions.ts";
import { type StandbyChange, StandbyWatch } from "./standby-watch.ts";
import { MAX_OPERATOR_READ_MS } from "../sql/operator-read-queue.ts";
import { OutageCauses } from "../../runtime/outage-causes.ts";

export interface PoolsOptions extends Partial<
  Pick<ConnectionPoolOptions, "timeoutMs" | "maxQueued" | "probeEveryMs" | "onStateChange" | "onResponse">
> {
  /** The schema of the tables. The default is that of the server. */
  readonly schema?: string | undefined;
  /** The longest time that a statement of a read of operators may take. */
  readonly operatorReadMs?: number;
  /** The time without such a read after which its connections close. */
  readonly operatorReadIdleSeconds?: number;
  /** Called when commits begin to wait for a standby that is away, and when they no longer do. */
  readonly onStandbyChange?: ((change: StandbyChange) => void) | undefined;
}

/** The number of connections of each pool. */
const SIZES = {
  reads: 2,
  creates: 1,
  orders: 2,
  writes: 1,
  lookups: 1,
  limits: 2,
  operatorReads: 2,
} as const;
export const OPERATOR_READS = SIZES.operatorReads;

/** The greatest number of connections that a server opens. One holds the lock of the environment. */
export const CONNECTIONS_PER_SERVER = Object.values(SIZES).reduce<number>((sum, size) => sum + size, 1);

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
  /** Transactions that change one row, one after the other for each row, on the connections for orders. */
  readonly rowTransactions: RowTransactions;
  /** These writes are few: they come from operators and from the usage history. */
  readonly writes: ConnectionPool;
  /** Anybody can cause lookups of keys, so a server runs few of them at a time. */
  readonly lookups: ConnectionPool;
  /**
   * Every request needs a decision about its key, so a commit of counts does not wait for the disk. One connection
   * counts, and one has transactions.
   */
  readonly limits: ConnectionPool;
  /** Lists, searches and sums of operators. Each occupies a connection, for longer than a client may wait. */
  readonly operatorReads: ConnectionPool;
  readonly timeoutMs: number;
  readonly maxQueued: number;
  readonly #all: readonly ConnectionPool[];
  #poolsDown = 0;
  readonly #causes: OutageCauses;
  readonly #primary: Primary;
  readonly #replacement: ReplacementWatch;
  readonly #standbys: StandbyWatch;

  constructor(primary: Primary, options: PoolsOptions = {}) {
    const { timeoutMs = 2_000, maxQueued = 4_096, probeEveryMs = 200, onStateChange } = options;
    const { operatorReadMs = MAX_OPERATOR_READ_MS, operatorReadIdleSeconds: idleSeconds = 30 } = options;
    this.#primary = primary;
    this.timeoutMs = timeoutMs;
    this.maxQueued = maxQueued;
    this.#causes = new OutageCauses(
      (cause) => onStateChange?.({ state: "down", cause }),
      isStartingOrStopping,
    );
    const common = { ...timeoutsWithin(timeoutMs), schema: options.schema };
    const pool = (
      own: Pick<ConnectOptions, "maxConnections" | "waitsForDisk" | "idleSeconds"> & Partial<Timeouts>,
      others: Partial<ConnectionPoolOptions> = {},
    ) =>
      new ConnectionPool({
        newConnections: (onClose) => connect(primary.url, { ...common, ...own, onClose }),
        probe: () => this.#followPrimary(primary, { ...common, maxConnections: 1 }),
        confirm: () => this.#replacement.compareIfDue(),
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
    const waitsForStandby = () => this.#standbys.waits();
    const writing = { waitsForStandby };
    // All creates wait for one lock, that of the next identifier, which can take long when many servers create pets.
    const longLockMs = Math.ceil(timeoutMs * 0.375);
    this.creates = pool({ maxConnections: SIZES.creates, lockMs: longLockMs }, writing);
    this.orders = pool({ maxConnections: SIZES.orders }, writing);
    this.rowTransactions = new RowTransactions(this.orders, { maxQueued, timeoutMs, waitsForStandby });
    this.writes = pool({ maxConnections: SIZES.writes }, writing);
    this.lookups = pool({ maxConnections: SIZES.lookups });
    // A server that is paused holds its locks until its idle transaction is ended.
    const limits = { maxConnections: SIZES.limits, lockMs: longLockMs, waitsForDisk: false } as const;
    this.limits = pool(limits, writing);
    // Only a frozen PostgreSQL takes longer than its own limit. What operators wait for is not its latency.
    const slow = { timeoutMs: operatorReadMs + timeoutMs, onResponse: undefined };
    this.operatorReads = pool(
      { maxConnections: SIZES.operatorReads, statementMs: operatorReadMs, idleSeconds },
      slow,
    );
    const { reads, creates, orders, writes, lookups, operatorReads } = this;
    this.#all = [reads, creates, orders, writes, lookups, this.limits, operatorReads];
    this.#replacement = new ReplacementWatch({
      find: () => primary.findReplacement(),
      isOutage: () => this.#poolsDown > 0,
      onReplaced: (cause) => {
        for (const pool of this.#all) pool.leave(cause);
      },
    });
  }

  /** The number of queries that run or wait for a connection. */
  get queueLength(): number {
    return this.#all.reduce((sum, pool) => sum + pool.queueLength, 0);
  }

  async close(): Promise<void> {
    await this.#replacement.close();
    this.#primary.close();
    await this.#standbys.close();
    await Promise.all(this.#all.map((pool) => pool.close()));
  }

  /** Finds the primary and makes all pools use it, so that no read is older than a write. */
  async #followPrimary(primary: Primary, options: ConnectOptions): Promise<void> {
    const before = primary.url;
    await primary.find(options);
    if (primary.url !== before) for (const pool of this.#all) pool.replaceConnections();
  }
}

/**
 * The timeouts of PostgreSQL. They are shorter than that of this process, `timeoutMs`: a slow statement must not look
 * like a dead PostgreSQL.
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
