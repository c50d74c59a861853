import { Unavailable } from "../../contract/errors.ts";
import type { Connection } from "./connection.ts";
import { isBusy } from "./sqlite-errors.ts";

interface Write {
  run(): unknown;
  resolve(result: unknown): void;
  reject(reason: unknown): void;
}

export interface GroupCommitOptions {
  /** Writes that may wait; past it the next one is turned away. */
  readonly maxWaiting?: number;
  /** How long to try again while another process keeps the database to itself. */
  readonly maxBusyMs?: number;
  /** Runs in every transaction, after its writes. */
  readonly housekeep?: (writes: number) => void;
}

/** Bounds how long one transaction holds up the event loop: a few milliseconds of inserts. */
const MAX_BATCH = 1_000;
const RETRY_BUSY_MS = 25;

/**
 * Group commit. A commit costs a wait for the disk, whether it holds one write or thirty-two; so writes that arrive
 * together share one, and each of them is answered after it.
 *
 * "Together" means until `setImmediate`: requests that one turn of the event loop delivers from 32 connections make
 * batches of 31.5 on average that way. Microtasks and `nextTick` run after each request (batches of one), and
 * `setTimeout(0)` waits a millisecond for nothing.
 */
export class GroupCommit {
  readonly #maxWaiting: number;
  readonly #maxBusyMs: number;
  readonly #housekeep: (writes: number) => void;
  #waiting: Write[] = [];
  #scheduled = false;
  #busySince: number | undefined;
  #closed = false;

  constructor(
    private readonly connection: Connection,
    options: GroupCommitOptions = {},
  ) {
    this.#maxWaiting = options.maxWaiting ?? 10_000;
    this.#maxBusyMs = options.maxBusyMs ?? 2_000;
    this.#housekeep = options.housekeep ?? (() => {});
  }

  /** Resolves with what `work` returns, after its commit. Work that throws is undone, and undoes no other. */
  submit<T>(work: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(new Unavailable("the store is closed"));
    if (this.#waiting.length >= this.#maxWaiting) {
      return Promise.reject(new Unavailable(`${this.#waiting.length} writes are waiting already`));
    }
    return this.#enqueue(work);
  }

  /** Turns new writes away and waits until those accepted are committed or failed. */
  async close(): Promise<void> {
    this.#closed = true;
    // Writes are settled in their order, so the last one to be settled is this one.
    await this.#enqueue(() => {}).catch(() => {});
  }

  #enqueue<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // What `run` returns is what `resolve` is given: the two types meet here and nowhere else.
      this.#waiting.push({ run: work, resolve: resolve as (result: unknown) => void, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#scheduled = false;
    const batch = this.#waiting.splice(0, MAX_BATCH);
    try {
      if (batch.length > 0) this.#commit(batch);
      this.#busySince = undefined;
    } catch (error) {
      this.#waiting = batch.concat(this.#waiting);
      this.#waitWhileBusy(error);
    }
    if (this.#waiting.length > 0) this.#schedule();
  };

  /** Throws when the database was busy and nothing of the batch has been settled; settles it in every other case. */
  #commit(batch: readonly Write[]): void {
    let results: unknown[];
    try {
      results = this.connection.transaction(() => {
        const done = batch.map((write) => write.run());
        this.#housekeep(batch.length);
        return done;
      });
    } catch (error) {
      if (isBusy(error)) throw error;
      this.#divide(batch, error);
      return;
    }
    for (let i = 0; i < batch.length; i++) batch[i]?.resolve(results[i]);
  }

  /** One write at fault must not take the others with it; halving finds it in few commits. */
  #divide(batch: readonly Write[], error: unknown): void {
    if (batch.length <= 1 || error instanceof Unavailable) {
      for (const write of batch) write.reject(error);
      return;
    }
    const middle = batch.length >> 1;
    for (const half of [batch.slice(0, middle), batch.slice(middle)]) {
      try {
        this.#commit(half);
      } catch (busy) {
        for (const write of half) write.reject(busy);
      }
    }
  }

  /** Waits on a timer, not in SQLite, so that reads go on meanwhile. */
  #waitWhileBusy(error: unknown): void {
    const now = performance.now();
    this.#busySince ??= now;
    if (now - this.#busySince < this.#maxBusyMs) {
      this.#scheduled = true;
      setTimeout(this.#turn, RETRY_BUSY_MS);
      return;
    }
    this.#busySince = undefined;
    for (const write of this.#waiting.splice(0)) write.reject(error);
  }
}
