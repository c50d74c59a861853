import { type ScheduledTimer, scheduler } from "../event-loop.ts";

const DELETE_EVERY_MS = 600_000;
/** Between two transactions while there is more to delete. */
const PAUSE_MS = 100;

interface RetentionOptions {
  /** Deletes some of what is too old, and resolves to whether there is more. */
  readonly deleteSome: () => Promise<boolean>;
  /** The next attempt is ten minutes later. */
  readonly onError: (error: unknown) => void;
}

/** Deletes old data every ten minutes, some at a time, so that no request waits for long. */
export class Retention {
  readonly #options: RetentionOptions;
  #timer: ScheduledTimer | undefined;
  #running = Promise.resolve();
  #isClosed = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#schedule(PAUSE_MS);
  }

  /** Resolves after the transaction in progress. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.close();
    await this.#running;
  }

  #schedule(ms: number): void {
    this.#timer = scheduler.setTimeout(() => (this.#running = this.#run()), ms);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    const { deleteSome, onError } = this.#options;
    const hasMore = await deleteSome().catch((error: unknown) => {
      onError(error);
      return false;
    });
    if (!this.#isClosed) this.#schedule(hasMore ? PAUSE_MS : DELETE_EVERY_MS);
  }
}
