import { Overloaded, Unavailable } from "../../api/errors.ts";
import type { Awaitable } from "../../runtime/awaitable.ts";
import { type Scheduler, scheduler } from "../../runtime/scheduler.ts";

interface BatchQueueOptions<Item, Result> {
  /** Runs a batch in one transaction or statement, all or none. The results are in the order of the items. */
  readonly run: (items: readonly Item[]) => Awaitable<readonly Result[]>;
  readonly maxBatch: number;
  readonly maxQueued: number;
  /** The longest time that an item may wait in the queue before it is rejected; by default there is no limit. */
  readonly maxQueueMs?: number;
  /** Called after each batch with its items and the time that it took. */
  readonly onBatch?: ((items: readonly Item[], ms: number) => void) | undefined;
  /**
   * Repeats a batch that failed because another process has locked the database. Each item is retried for `maxMs`,
   * after random pauses up to `pauseMs`.
   */
  readonly retry?: {
    readonly isBusy: (error: unknown) => boolean;
    readonly maxMs: (item: Item) => number;
    readonly pauseMs: number;
  };
  /** Whether a batch waits for a moment for those whose items the last one had. */
  readonly waitsForReturning?: boolean;
  readonly scheduler?: Scheduler;
}

interface QueuedItem<Item, Result> {
  readonly item: Item;
  readonly queuedAt: number;
  resolve(result: Result): void;
  reject(reason: unknown): void;
}

/** After this time a batch waits for no further iteration of the event loop. A commit on SQLite takes about as long. */
const MAX_COLLECT_MS = 0.3;
/** How long a batch waits for those who got a result from the last one, as a share of the time that it took. */
const RETURNING_SHARE = 0.2;
const MAX_RETURNING_MS = 2;

/**
 * Runs what arrives together as one batch. One batch runs at a time, and the items that arrive meanwhile form the next.
 *
 * Writes share a transaction (group commit), because a transaction waits for the disk once, however many writes it
 * holds. `bun bench/store.ts`: on SQLite, 32 creates take 0.3 ms in one transaction and 7 ms in 32. Reads of PostgreSQL
 * share a statement.
 *
 * A batch starts after an iteration of the event loop that has brought no further item: clients that got their
 * responses together send their next requests one shortly after the other. With 4 to 16 connections that write
 * (`wrk -t1`), that takes a tenth less CPU time. A commit on SQLite uses the event loop: `yield` writes the responses
 * that are ready before each attempt.
 *
 * Batches that wait for a disk (`waitsForReturning`) also wait for the clients of the batch before: those who queued
 * meanwhile would otherwise form a batch without them, and the two groups would take turns, each waiting for the disk
 * twice. With 32 connections and a sync of 5 ms that is 2,400 instead of 3,700 creates a second. A batch expects as
 * many items as the last one had and left in the queue, so a client that writes alone waits for nobody.
 */
export class BatchQueue<Item, Result> {
  readonly #options: BatchQueueOptions<Item, Result>;
  readonly #scheduler: Scheduler;
  readonly #queue: QueuedItem<Item, Result>[] = [];
  #running: Promise<void> | undefined;
  #closed = false;
  /** How many items are expected after a batch, and until when. */
  #expected = 0;
  #expectedUntil = 0;

  constructor(options: BatchQueueOptions<Item, Result>) {
    this.#options = options;
    this.#scheduler = options.scheduler ?? scheduler;
  }

  /** The number of items that wait for the next batch. */
  get queueLength(): number {
    return this.#queue.length;
  }

  /** Resolves after the batch. An item that makes its batch fail is rejected alone; the others are run again. */
  submit(item: Item): Promise<Result> {
    if (this.#closed) return Promise.reject(new Unavailable("the store is closed"));
    if (this.#queue.length >= this.#options.maxQueued) {
      return Promise.reject(new Overloaded(`the queue is full (${this.#queue.length})`));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, queuedAt: this.#scheduler.now(), resolve, reject });
      this.#running ??= this.#runAll();
    });
  }

  /** Rejects new items, and waits until the queued ones are done or have failed. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #runAll(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#collect();
      await this.#runBatch(this.#nextBatch());
    }
    this.#running = undefined;
  }

  #expectReturning(items: number, ms: number): void {
    this.#expected = items + this.#queue.length;
    this.#expectedUntil = this.#scheduler.now() + Math.min(ms * RETURNING_SHARE, MAX_RETURNING_MS);
  }

  async #collect(): Promise<void> {
    const startedAt = this.#scheduler.now();
    let collected = 0;
    const isCollecting = (now: number) =>
      (this.#queue.length > collected && now - startedAt < MAX_COLLECT_MS) ||
      (this.#queue.length < this.#expected && now < this.#expectedUntil);
    while (isCollecting(this.#scheduler.now())) {
      collected = this.#queue.length;
      // A microtask or `nextTick` would run after each single request.
      await this.#scheduler.yield();
    }
  }

  #nextBatch(): QueuedItem<Item, Result>[] {
    const { maxBatch, maxQueueMs = Infinity } = this.#options;
    const earliest = this.#scheduler.now() - maxQueueMs;
    const batch = this.#queue.splice(0, maxBatch);
    for (const { queuedAt, reject } of batch) {
      if (queuedAt < earliest) reject(new Overloaded(`queued for more than ${maxQueueMs} ms`));
    }
    return batch.filter(({ queuedAt }) => queuedAt >= earliest);
  }

  async #runBatch(batch: readonly QueuedItem<Item, Result>[]): Promise<void> {
    const { run, onBatch, retry } = this.#options;
    const startedAt = this.#scheduler.now();
    let pending = batch;
    while (pending.length > 0) {
      try {
        const items = pending.map(({ item }) => item);
        const results = await run(items);
        const ms = this.#scheduler.now() - startedAt;
        onBatch?.(items, ms);
        if (this.#options.waitsForReturning === true) this.#expectReturning(items.length, ms);
        for (const [i, result] of results.entries()) pending[i]?.resolve(result);
        return;
      } catch (error) {
        if (retry?.isBusy(error) !== true) return this.#splitFailed(pending, error);
        const now = this.#scheduler.now();
        const isOver = ({ item, queuedAt }: QueuedItem<Item, Result>) => now - queuedAt >= retry.maxMs(item);
        for (const each of pending) if (isOver(each)) each.reject(error);
        pending = pending.filter((each) => !isOver(each));
        await this.#scheduler.sleep(retry.pauseMs * this.#scheduler.random());
        await this.#scheduler.yield();
      }
    }
  }

  /** Isolates the item that fails by halving the batch, and runs the rest. */
  async #splitFailed(batch: readonly QueuedItem<Item, Result>[], error: unknown): Promise<void> {
    if (batch.length === 1 || error instanceof Unavailable) {
      for (const { reject } of batch) reject(error);
      return;
    }
    const middle = batch.length >> 1;
    await this.#runBatch(batch.slice(0, middle));
    await this.#runBatch(batch.slice(middle));
  }
}
