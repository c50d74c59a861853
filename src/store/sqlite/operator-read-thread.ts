import { Unavailable } from "../../api/errors.ts";
import { type ScheduledTimer, scheduler } from "../../runtime/scheduler.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { MAX_OPERATOR_READ_MS, OperatorReadQueue } from "../sql/operator-read-queue.ts";
import { runSteps, type Statement, type Statements } from "../sql/steps.ts";
import { DatabaseThread } from "./database-thread.ts";

interface OperatorReadThreadOptions {
  readonly maxReadMs?: number;
  /** The longest time that a read waits for those before it. */
  readonly maxWaitMs?: number;
  /** How long the thread lives after its last read: longer than the two seconds between requests of a console. */
  readonly idleMs?: number;
}

const IDLE_MS = 30_000;
/** How long a read waits for the end of the thread before: an earlier read may have taken too long. */
const MAX_END_MS = 1_000;

class TooSlow extends Unavailable {}

/**
 * Reads for operators, on a connection in a thread of their own: a search of all keys delays no request. The thread
 * starts with the first read, in 40 ms, and ends when no read follows, so that a server that nobody looks at has no
 * memory for it. In it, the read of a pet takes 0.05 ms instead of 0.01.
 */
export class OperatorReadThread {
  #thread: DatabaseThread | undefined;
  /** Resolves when the thread before has ended. It may still execute the statement of a read that took too long. */
  #ending: Promise<void> | undefined;
  #idleTimer: ScheduledTimer | undefined;
  #isClosed = false;
  readonly #queue: OperatorReadQueue;

  constructor(
    private readonly path: string,
    private readonly options: OperatorReadThreadOptions = {},
  ) {
    const { maxWaitMs } = options;
    this.#queue = new OperatorReadQueue({ maxRunning: 1, ...(maxWaitMs !== undefined && { maxWaitMs }) });
  }

  /** Runs the statements. Each sees what was committed before it began. */
  readonly read = <T>(statements: Statements<T>): Promise<T> => {
    const { maxReadMs = MAX_OPERATOR_READ_MS, idleMs = IDLE_MS } = this.options;
    return this.#queue.run(async () => {
      const thread = await this.#open();
      try {
        const run = (statement: Statement) => thread.call("readRows", [this.path, statement]);
        return await withTimeout(maxReadMs, runSteps(statements, run), TooSlow);
      } catch (error) {
        // What has failed may have left the thread or its connection unusable. The next read has new ones.
        this.#end();
        throw error;
      } finally {
        this.#idleTimer = scheduler.setTimeout(() => this.#end(), idleMs);
      }
    });
  };

  async #open(): Promise<DatabaseThread> {
    this.#idleTimer?.close();
    if (this.#ending) await withTimeout(MAX_END_MS, this.#ending, TooSlow);
    if (this.#isClosed) throw new Unavailable("the store is closed");
    return (this.#thread ??= new DatabaseThread());
  }

  #end(): void {
    this.#idleTimer?.close();
    const thread = this.#thread;
    if (thread === undefined) return;
    this.#thread = undefined;
    this.#ending = thread.close().then(() => (this.#ending = undefined));
  }

  /** Waits until the thread has closed its connection, unless that takes too long. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#end();
    if (this.#ending) await withTimeout(MAX_END_MS, this.#ending).catch(() => {});
  }
}
