import type { StateChange } from "../../state-change.ts";
import { connect, type ConnectOptions, type Timeouts } from "./connection.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { isFromServer } from "../postgres-errors.ts";

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

/** Queries are pipelined, so few connections are fastest. */
const READ_CONNECTIONS = 2;
/** One batch of creates runs at a time. */
const CREATE_CONNECTIONS = 1;
/** Each transaction occupies a connection. */
const WRITE_CONNECTIONS = 2;
/** Anybody can cause look-ups of keys; an instance runs few of them at a time. */
const LOOK_UP_CONNECTIONS = 1;

/**
 * One pool for reads, one for creating pets, one for all other writes and one for looking up keys. Reads do not wait
 * behind a write that waits for a lock, creates do not wait behind orders, and nothing waits behind unknown keys. While
 * commits fail (a disk that stalls, a missing replica), reads continue.
 */
export class Pools {
  readonly reads: ConnectionPool;
  readonly creates: ConnectionPool;
  readonly writes: ConnectionPool;
  readonly lookUps: ConnectionPool;
  readonly timeoutMs: number;
  readonly maxQueued: number;
  readonly #onStateChange: (change: StateChange) => void;
  #poolsDown = 0;

  constructor(url: string, options: PoolsOptions = {}) {
    const { timeoutMs = 2_000, maxQueued = 4_096, probeEveryMs = 200, onStateChange = () => {} } = options;
    this.timeoutMs = timeoutMs;
    this.maxQueued = maxQueued;
    this.#onStateChange = onStateChange;
    const common = { ...timeoutsWithin(timeoutMs), schema: options.schema };
    const pool = (own: Pick<ConnectOptions, "maxConnections"> & Partial<Timeouts>) =>
      new ConnectionPool({
        connect: () => connect(url, { ...common, ...own }),
        probe: () => probe(url, { ...common, maxConnections: 1 }),
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
    this.writes = pool({ maxConnections: WRITE_CONNECTIONS });
    this.lookUps = pool({ maxConnections: LOOK_UP_CONNECTIONS });
  }

  get #all(): readonly ConnectionPool[] {
    return [this.reads, this.creates, this.writes, this.lookUps];
  }

  /** Queries that run or wait for a connection. */
  get queueLength(): number {
    return this.#all.reduce((sum, pool) => sum + pool.queueLength, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((pool) => pool.close()));
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

/** A standby accepts connections, but no writes. */
async function probe(url: string, options: ConnectOptions): Promise<void> {
  const sql = connect(url, options);
  const timer = setTimeout(() => void sql.close({ timeout: 0 }), options.connectMs);
  try {
    const [server] = await sql<[{ isStandby: boolean }]>`SELECT pg_is_in_recovery() AS "isStandby"`;
    if (server.isStandby) throw new Error("the server is a standby");
  } finally {
    clearTimeout(timer);
    void sql.close({ timeout: 0 });
  }
}
