import type { ReservedSQL, SQL } from "bun";
import { OutcomeUnknown, Overloaded, Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import type { StateChange } from "../../domain/ports/stores.ts";
import {
  hasIdled,
  isClosed,
  isFromServer,
  isLocked,
  isServerDown,
  postgresUnavailable,
  withExplanation,
} from "./errors.ts";
import { commitsWait } from "./standby-watch.ts";
import { DeadlineExceeded, withTimeout } from "../../runtime/timeout.ts";
import { type ScheduledTimer, scheduler } from "../../runtime/scheduler.ts";

export interface ConnectionPoolOptions {
  /** The longest time that a query or a transaction may take. */
  readonly timeoutMs: number;
  /** The number of queries that may wait for a connection. The next one is rejected at once. */
  readonly maxQueued: number;
  readonly probeEveryMs: number;
  readonly onStateChange: (change: StateChange) => void;
  /** Called after each query and each transaction that the server responded to. */
  readonly onResponse: ((ms: number) => void) | undefined;
  /** Opens connections when they are first used. `onClose` is called with the reason when one closes. */
  readonly newConnections: (onClose: (reason: unknown) => void) => SQL;
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

/** The failure of a transaction that had begun and may have been committed. The cause says which. */
class LostResponse extends Error {
  constructor(cause: unknown) {
    super("no response to a transaction", { cause });
  }
}

/** Runs work on a connection of its own, which the pool has back afterwards. */
type UseConnection<T, Connection> = (sql: SQL, run: (connection: Connection) => Promise<T>) => Promise<T>;

/**
 * A small pool with a bounded queue, a timeout on every query, and a circuit breaker: once the server is down, queries
 * fail at once until a probe succeeds. The client enforces the timeout itself, because a frozen server neither enforces
 * one nor responds to `cancel()`. After a timeout the connections are replaced.
 */
export class ConnectionPool {
  /** How many connections were lost. PostgreSQL may have crashed or been replaced each time. */
  lostConnections = 0;
  #sql: SQL;
  #queued = 0;
  #respondedAt = -Infinity;
  #idle = Promise.resolve();
  #onIdle = () => {};
  #closed = false;
  #outage: { readonly since: number; readonly cause: unknown } | undefined;
  #timer: ScheduledTimer | undefined;

  constructor(private readonly options: ConnectionPoolOptions) {
    this.#sql = options.newConnections(this.#onClose);
  }

  /** A server that ends an idle transaction has lost nothing. */
  readonly #onClose = (reason: unknown) => {
    if (!hasIdled(reason)) this.lostConnections++;
  };

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
    return this.#runTransaction((sql, run: (tx: SQL) => Promise<T>) => sql.begin(run) as Promise<T>, work);
  }

  /** Runs work that begins and ends a transaction itself, with the timeouts of a transaction. */
  onConnection<T>(work: (sql: ReservedSQL) => Promise<T>): Promise<T> {
    return this.#runTransaction(async (sql, run: (reserved: ReservedSQL) => Promise<T>) => {
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
  async #runTransaction<T, Connection>(
    useConnection: UseConnection<T, Connection>,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    return await this.#attemptTransaction(useConnection, work).catch((error: unknown) => {
      if (error instanceof Unavailable && hasIdled(error.cause))
        return this.#attemptTransaction(useConnection, work);
      throw error;
    });
  }

  #attemptTransaction<T, Connection>(
    useConnection: UseConnection<T, Connection>,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    return this.#run(async (sql) => {
      const halfMs = this.options.timeoutMs / 2;
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      let isLate = false;
      const done = useConnection(sql, (connection) => {
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
    this.lostConnections++;
    void this.#sql.close({ timeout: 0 });
    this.#sql = this.options.newConnections(this.#onClose);
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
