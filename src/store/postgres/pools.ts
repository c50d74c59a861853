import type { Turn } from "./circuit-breaker.ts";
import { connect, type ConnectOptions, type Timeouts } from "./connect.ts";
import { isAnswer } from "./postgres-errors.ts";
import { ConnectionPool } from "./connection-pool.ts";

export interface PoolsOptions {
  /** Where the tables are; the server's default otherwise. */
  readonly schema?: string;
  /** The longest that any query or transaction is waited for. */
  readonly deadlineMs?: number;
  /** Queries that may wait for a connection, in each pool; past it the next one is turned away at once. */
  readonly maxWaiting?: number;
  readonly probeEveryMs?: number;
  /** Told when the engine is found to be down, and when it is back. */
  readonly onTurn?: (turn: Turn) => void;
}

/** Few connections are fastest: queries are sent one behind the other without waiting for the answers between. */
const READERS = 2;
/** One batch of creates is under way at a time. */
const CREATORS = 1;
/** A transaction has a connection to itself. */
const WRITERS = 2;

/**
 * PostgreSQL, as the stores see it: a pool for reads, one for creates and one for all other writes. No read stands
 * behind a write that waits for a lock, no create behind orders; and where commits do not come through (a disk that
 * stalls, a replica that is missing), reads go on.
 */
export class Pools {
  readonly reads: ConnectionPool;
  readonly creates: ConnectionPool;
  readonly writes: ConnectionPool;
  readonly deadlineMs: number;
  readonly maxWaiting: number;
  readonly #onTurn: (turn: Turn) => void;
  #poolsDown = 0;

  constructor(url: string, options: PoolsOptions = {}) {
    const { deadlineMs = 2_000, maxWaiting = 4_096, probeEveryMs = 200, onTurn = () => {} } = options;
    this.deadlineMs = deadlineMs;
    this.maxWaiting = maxWaiting;
    this.#onTurn = onTurn;
    const common = { ...timeoutsWithin(deadlineMs), schema: options.schema };
    const pool = (own: Pick<ConnectOptions, "max"> & Partial<Timeouts>) =>
      new ConnectionPool({
        connect: () => connect(url, { ...common, ...own }),
        probe: () => probe(url, { ...common, max: 1 }),
        probeEveryMs,
        maxWaiting,
        deadlineMs,
        onTurn: (turn) => this.#turn(turn),
        onFailedProbe: (cause) => this.#suspect(cause),
      });
    this.reads = pool({ max: READERS });
    // The only lock that creates wait for is their turn, which may be slow in coming when many instances take theirs.
    this.creates = pool({ max: CREATORS, lockMs: Math.ceil(deadlineMs * 0.375) });
    this.writes = pool({ max: WRITERS });
  }

  async close(): Promise<void> {
    await Promise.all([this.reads.close(), this.creates.close(), this.writes.close()]);
  }

  /** What one pool found out by a connection of its own, the others need not find out by their callers' waiting. */
  #suspect(cause: unknown): void {
    if (isAnswer(cause)) return;
    for (const pool of [this.reads, this.creates, this.writes]) pool.suspect(cause);
  }

  /** Down with the first pool, up with the last. */
  #turn(turn: Turn): void {
    this.#poolsDown += turn.state === "down" ? 1 : -1;
    if (this.#poolsDown === (turn.state === "down" ? 1 : 0)) this.#onTurn(turn);
  }
}

/** The server gives up before we do, so that a slow statement is told from a server that is gone. */
function timeoutsWithin(deadlineMs: number): Timeouts {
  return {
    connectMs: deadlineMs / 2,
    statementMs: Math.ceil(deadlineMs / 2),
    // An order waits for three locks at the most, one after the other; all of it has half of the time.
    lockMs: Math.ceil(deadlineMs / 8),
    idleInTransactionMs: Math.ceil(deadlineMs / 4),
  };
}

/** A server that has become a standby answers, but takes no writes. */
async function probe(url: string, options: ConnectOptions): Promise<void> {
  const sql = connect(url, options);
  const timer = setTimeout(() => void sql.close({ timeout: 0 }), options.connectMs);
  try {
    const [answer] = await sql<[{ isStandby: boolean }]>`SELECT pg_is_in_recovery() AS "isStandby"`;
    if (answer.isStandby) throw new Error("the server is a standby");
  } finally {
    clearTimeout(timer);
    void sql.close({ timeout: 0 });
  }
}
