import { closeOwnFile, disk, openToSync } from "../../runtime/own-files.ts";
import { FailureReporter } from "../../runtime/failure-reporter.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import type { CheckpointResult } from "./checkpoint.ts";
import type { Connection } from "./connection.ts";

/** How a server learns what happens to the log. */
export interface LogEvents {
  /** Called after each sync with its time. */
  readonly onSync?: (ms: number) => void;
  /** Called after the first of the checkpoints that fail. */
  readonly onCheckpointFailure?: (error: unknown) => void;
}

/** The length at which the log is copied to the database and starts anew. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;
/** How much the log grows before a checkpoint is tried again. */
const RETRY_BYTES = 4 * 1024 * 1024;
/** The length at which commits wait for the copy that runs. */
export const MAX_BYTES = 32 * 1024 * 1024;
/** A page of a log has a header. */
const PAGE_BYTES = 4096 + 24;

type CheckpointStep = "copyLog" | "restartLog";

interface CheckpointThread {
  call(step: CheckpointStep, args: [path: string]): Promise<CheckpointResult>;
  close(): Promise<void>;
}

/** An error of the disk after which nobody knows what is on it. */
class SyncFailure extends Error {}

/**
 * Copies the log of a database to the database without blocking the event loop, in a thread that starts with the first
 * checkpoint. Each has two steps. The first one copies the log while others commit; it cannot reach the end of a log
 * that grows. For the second one the next commit waits: it copies the rest and starts the log anew. So the log is
 * bounded also if writes never pause, unless another process reads for as long.
 *
 * The log keeps its file and its length when it starts anew: a disk syncs pages that are written again in half the time
 * of pages that are appended.
 */
export class LogCheckpoints {
  #thread: CheckpointThread | undefined;
  #copying: Promise<void> | undefined;
  #isCopied = false;
  #nextAtBytes = CHECKPOINT_BYTES;
  #syncFailure: SyncFailure | undefined;
  readonly #failures: FailureReporter;

  constructor(
    private readonly path: string,
    private readonly connection: Pick<Connection, "get">,
    onFailure: (error: unknown) => void = () => {},
  ) {
    this.#failures = new FailureReporter(onFailure);
  }

  /** The length of the log; 0 if it cannot be read. */
  get bytes(): number {
    try {
      const state = this.connection.get<{ log: bigint | number }>("PRAGMA wal_checkpoint(NOOP)");
      return Math.max(0, Number(state?.log ?? 0)) * PAGE_BYTES;
    } catch {
      return 0;
    }
  }

  /**
   * Must be called before each commit, without a pinned read. Returns a promise if the commit has to wait. It rejects
   * if a sync has failed; after other errors the log grows, and a later checkpoint is tried.
   */
  makeRoom(): Promise<void> | undefined {
    if (this.#syncFailure) return Promise.reject(this.#syncFailure);
    if (this.#isCopied) return this.#restart();
    const { bytes } = this;
    if (this.#copying) return bytes < MAX_BYTES ? undefined : this.#copying.then(() => this.makeRoom());
    if (bytes >= this.#nextAtBytes) this.#copying = this.#copy();
    return undefined;
  }

  async #copy(): Promise<void> {
    this.#isCopied = await this.#call("copyLog");
    this.#copying = undefined;
  }

  async #restart(): Promise<void> {
    this.#isCopied = false;
    const isDone = await this.#call("restartLog");
    if (isDone) this.#nextAtBytes = CHECKPOINT_BYTES;
    if (this.#syncFailure) throw this.#syncFailure;
  }

  /** Returns whether the step is done. */
  async #call(step: CheckpointStep): Promise<boolean> {
    this.#nextAtBytes = this.bytes + RETRY_BYTES;
    try {
      this.#thread ??= new (await import("./database-thread.ts")).DatabaseThread();
      const result: CheckpointResult = await this.#thread.call(step, [this.path]);
      if ("syncFailure" in result) {
        this.#syncFailure = new SyncFailure(result.syncFailure);
        return false;
      }
      this.#failures.succeeded();
      return result.isDone;
    } catch (error) {
      this.#failures.failed(error);
      return false;
    }
  }

  async close(): Promise<void> {
    await this.#copying;
    await this.#thread?.close();
  }
}

/** The log of a database that a server has open. */
export class WriteAheadLog {
  readonly #checkpoints: LogCheckpoints;
  /** A descriptor of its own. Unlike one of the database, closing it releases no lock of this process. */
  readonly #descriptor: number;

  constructor(
    path: string,
    connection: Connection,
    private readonly events: LogEvents,
  ) {
    this.#checkpoints = new LogCheckpoints(path, connection, events.onCheckpointFailure);
    this.#descriptor = openToSync(`${path}-wal`);
    // The server before may have been killed between a commit and its sync. From now on, this one shows what it left.
    disk.sync(this.#descriptor);
  }

  get bytes(): number {
    return this.#checkpoints.bytes;
  }

  makeRoom(): Promise<void> | undefined {
    return this.#checkpoints.makeRoom();
  }

  /** Resolves when all that was committed before is on the disk. */
  async sync(): Promise<void> {
    const startedAt = scheduler.now();
    await disk.syncContents(this.#descriptor);
    this.events.onSync?.(scheduler.now() - startedAt);
  }

  async close(): Promise<void> {
    await this.#checkpoints.close();
    closeOwnFile(this.#descriptor);
  }
}
