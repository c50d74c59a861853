import { OutcomeUnknown, Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import type { StateChange } from "../../domain/ports/stores.ts";
import { FailureReporter } from "../../runtime/failure-reporter.ts";
import { type ScheduledTimer, type Scheduler, scheduler } from "../../runtime/scheduler.ts";
import { BatchQueue } from "../sql/batch-queue.ts";
import { isBusy } from "./errors.ts";
import { PAUSE_MS, TRANSACTION_WAIT_MS } from "./waits.ts";

/** How commits of a server reach the disk while its event loop goes on. */
export interface CommitDisk {
  /** What a server shows is read here. */
  readonly reads: {
    /** Keeps what is read at the last commit until `unpin`. */
    pin(): void;
    unpin(): void;
  };
  readonly log: {
    /** Resolves when the next commit can begin; undefined if it can at once. Nothing is pinned meanwhile. */
    makeRoom(): Promise<void> | undefined;
    /** Resolves when all that was committed before is on the disk. */
    sync(): Promise<void>;
  };
}

export interface CommitQueueOptions {
  readonly maxQueuedWrites?: number;
  /** How long a write is retried while another process has the database locked, unless it says so itself. */
  readonly maxBusyMs?: number;
  /** Called after each transaction that waits for the disk, with the number of its writes that do. */
  readonly onCommit?: (writes: number, ms: number) => void;
  readonly onStateChange?: (change: StateChange) => void;
  /** Called when a sync has failed. Every write fails from then on, and the process must end. */
  readonly onSyncFailure?: (error: Error) => void;
  readonly scheduler?: Scheduler;
}

interface CommitQueueParts {
  readonly connection: {
    transaction<T>(work: () => T): T;
    /** The number of rows that the connection has written. */
    readonly rowsWritten: number;
  };
  /** Undefined in a command, whose transactions wait for the disk themselves. */
  readonly disk: CommitDisk | undefined;
  /** Called at the end of each transaction that waits for the disk, in it, with the number of its writes. */
  readonly atEnd: (writes: number) => void;
}

export interface WriteOptions {
  /** How long the write is retried while another process has the database locked. */
  readonly maxBusyMs?: number;
  /** Whether the write waits for the disk, as it does by default. Otherwise a power failure may lose it. */
  readonly waitsForDisk?: boolean;
}

interface Write {
  readonly work: () => unknown;
  readonly maxBusyMs: number;
  readonly waitsForDisk: boolean;
}

/** Bounds how long one transaction blocks the event loop: this many inserts take a few milliseconds. */
const MAX_WRITES_PER_TRANSACTION = 1_000;
/** A sync that takes longer is reported, because writes wait for it. */
const SLOW_SYNC_MS = 2_000;
const LOOK_EVERY_MS = 500;

/**
 * The one place where a process commits to its database. The event loop waits for no disk: who has written waits for
 * it, and what is not on the disk is not shown.
 *
 *     collect → pin → commit → sync ─────────────→ unpin → effects → results
 *                              others read the state before
 *
 * One batch runs at a time. Reads are pinned to the state before it, it is committed without a sync, and the sync runs
 * in the thread pool. When it has ended, and in one step of the event loop, reads are unpinned, the effects of the
 * writes happen (revisions grow, caches drop what has changed) and the writers get their results.
 *
 * This is linearizable: every write, and every rejection, takes effect at the step that unpins its batch, in the order
 * of the transaction. That step is after the write was submitted and before its result. A read on the event loop takes
 * effect when it runs: it sees all batches whose step has happened and nothing else, because a batch is committed only
 * when the one before was unpinned, and the pin was taken in the step that commits. So whatever a read shows is on the
 * disk, a later read never shows less, and a read that begins after the result of a write shows the write. What is
 * cached between two of these steps comes from one state, and the effects of the next step drop what it changes. A
 * read on another connection of this process can see more than is unpinned, so what it has read waits for `shown`.
 *
 * A batch that has written no row waits for nothing, since all before it is on the disk. Writes that need not wait for
 * the disk share a transaction with those that do, or have one without a sync.
 *
 * The commits of another process sync the log before others see them, and with it everything before them. A pinned read
 * shows them when the sync that runs has ended, which both have asked the same disk for.
 *
 * After an error of a sync nobody knows what is on the disk, and a second sync would not show it: the kernel reports an
 * error once, and then counts the pages as written. So all writes fail, what is pinned stays pinned, the connections
 * stay open, since closing them would copy the log to the database, and the process ends.
 */
export class CommitQueue {
  readonly #queue: BatchQueue<Write, unknown>;
  readonly #outage: FailureReporter;
  readonly #scheduler: Scheduler;
  readonly #watch: ScheduledTimer | undefined;
  readonly #maxBusyMs: number;
  /** What happens when the batch that runs is shown. */
  #effects: (() => void)[] = [];
  #isPinned = false;
  #syncingSince: number | undefined;
  #synced: Promise<void> = Promise.resolve();
  #failure: Unavailable | undefined;

  constructor(
    private readonly parts: CommitQueueParts,
    private readonly options: CommitQueueOptions,
  ) {
    const { maxQueuedWrites = 10_000, maxBusyMs = TRANSACTION_WAIT_MS.clients } = options;
    const { onCommit, onStateChange = () => {} } = options;
    this.#scheduler = options.scheduler ?? scheduler;
    this.#maxBusyMs = maxBusyMs;
    this.#outage = new FailureReporter(
      (cause) => onStateChange({ state: "down", cause }),
      (afterMs) => onStateChange({ state: "up", afterMs }),
    );
    this.#queue = new BatchQueue({
      run: (writes) => this.#run(writes),
      maxBatch: MAX_WRITES_PER_TRANSACTION,
      maxQueued: maxQueuedWrites,
      onBatch: (writes, ms) => {
        const durable = writes.filter(({ waitsForDisk }) => waitsForDisk).length;
        if (durable > 0) onCommit?.(durable, ms);
      },
      retry: { isBusy, maxMs: (write) => write.maxBusyMs, pauseMs: PAUSE_MS.groupCommit },
      waitsForReturning: true,
      scheduler: this.#scheduler,
    });
    if (parts.disk === undefined) return;
    this.#watch = this.#scheduler.setInterval(() => this.#reportSlowSync(), LOOK_EVERY_MS);
    this.#watch.unref();
  }

  get length(): number {
    return this.#queue.queueLength;
  }

  /** Whether a sync has failed. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Resolves with what `work` returns, when it is committed and shown. `work` may run again. */
  submit<T>(work: () => T, { maxBusyMs = this.#maxBusyMs, waitsForDisk = true }: WriteOptions = {}) {
    // The result is that of this work; the types of BatchQueue cannot express that.
    return this.#queue.submit({ work, maxBusyMs, waitsForDisk }) as Promise<T>;
  }

  /** Makes something happen when the transaction that runs is shown. Nothing happens if it is rolled back. */
  whenShown(effect: () => void): void {
    this.#effects.push(effect);
  }

  /** Makes something happen when reads are not pinned: at once, or after the batch that runs. */
  whenUnpinned(work: () => void): void {
    if (this.#isPinned) this.#effects.push(work);
    else work();
  }

  /** Resolves when everything that was committed until now is on the disk and shown. */
  async shown(): Promise<void> {
    if (this.#failure) throw this.#failure;
    await this.#synced;
  }

  /** Rejects new writes, and resolves when the others have their results. */
  async close(): Promise<void> {
    await this.#queue.close();
    this.#watch?.close();
  }

  async #run(writes: readonly Write[]): Promise<readonly unknown[]> {
    if (this.#failure) throw this.#failure;
    await this.#makeRoom();
    const isDurable = writes.some(({ waitsForDisk }) => waitsForDisk);
    const disk = isDurable ? this.parts.disk : undefined;
    this.#effects = [];
    disk?.reads.pin();
    this.#isPinned = disk !== undefined;
    try {
      const { connection } = this.parts;
      const rowsBefore = connection.rowsWritten;
      const results = this.#commit(writes, isDurable);
      if (disk && connection.rowsWritten !== rowsBefore) await this.#sync(disk);
      this.#outage.succeeded();
      return results;
    } catch (error) {
      this.#effects = [];
      throw error;
    } finally {
      if (this.#failure === undefined) this.#show(disk);
    }
  }

  async #makeRoom(): Promise<void> {
    try {
      await this.parts.disk?.log.makeRoom();
    } catch (error) {
      throw this.#fail(error);
    }
  }

  #commit(writes: readonly Write[], isDurable: boolean): readonly unknown[] {
    try {
      return this.parts.connection.transaction(() => {
        const results = writes.map(({ work }) => work());
        if (isDurable) this.parts.atEnd(writes.length);
        return results;
      });
    } catch (error) {
      // If another process holds the lock, that is no outage: the commit is repeated.
      if (error instanceof Unavailable && !isBusy(error)) this.#outage.failed(error);
      throw error;
    }
  }

  async #sync({ log }: CommitDisk): Promise<void> {
    this.#syncingSince = this.#scheduler.now();
    this.#synced = log.sync().catch((error: unknown) => {
      throw this.#fail(error);
    });
    await this.#synced;
    this.#syncingSince = undefined;
  }

  #show(disk: CommitDisk | undefined): void {
    disk?.reads.unpin();
    this.#isPinned = false;
    for (const effect of this.#effects.splice(0)) effect();
  }

  /** Makes all writes fail after an error of a sync. Returns the error for those that it was for. */
  #fail(cause: unknown): OutcomeUnknown {
    const reason = `the disk did not confirm what was written (${messageOf(cause)}), so nobody knows what is on it`;
    this.#failure = new Unavailable(reason, { cause });
    this.#outage.failed(this.#failure);
    this.options.onSyncFailure?.(this.#failure);
    return new OutcomeUnknown(reason, { cause });
  }

  #reportSlowSync(): void {
    const waitsMs = this.#scheduler.now() - (this.#syncingSince ?? Infinity);
    if (waitsMs < SLOW_SYNC_MS || this.#failure) return;
    this.#outage.failed(new Unavailable(`the disk has confirmed no write for ${SLOW_SYNC_MS / 1_000} s`));
  }
}
