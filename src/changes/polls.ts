import { FailureReporter } from "../runtime/failure-reporter.ts";
import { repeat, type RepeatedWork } from "../runtime/repeat.ts";
import type { Scheduler } from "../runtime/scheduler.ts";

interface PollsOptions {
  /** Reads the changes and applies them. */
  readonly read: () => Promise<void>;
  /** Called when changes cannot be read, and when they can be read again. */
  readonly onUnreadable: (error: unknown) => void;
  readonly onReadable: () => void;
  readonly scheduler: Scheduler;
}

const POLL_EVERY_MS = 250;
/**
 * The polls that may run at once. One hung connection then delays a change by a quarter of a second. Each of them ends
 * within the timeout of a query.
 */
const MAX_POLLS = 8;
/** What is cached is used for this time after the start of a poll. A revocation takes effect within it. */
const CURRENT_FOR_MS = 1_000;
/** The longest time that requests wait for a poll. In an outage of the database, what is cached remains valid. */
const MAX_WAIT_MS = 1_000;
const RETRY_MS = 50;

/**
 * When changes are read. All that is cached is used only within a second of the start of a poll. A process that was
 * paused for longer, or whose event loop was busy, polls before it handles the next request (`whenCurrent`). Polls may
 * overlap, because one may hang.
 */
export class Polls {
  readonly #read: () => Promise<void>;
  readonly #reading: FailureReporter;
  readonly #scheduler: Scheduler;
  #running = 0;
  /** When the last successful poll began. */
  #readAt = -Infinity;
  #currentUntil = -Infinity;
  #failedAt = -Infinity;
  #catchingUp: Promise<void> | undefined;

  constructor({ read, onUnreadable, onReadable, scheduler }: PollsOptions) {
    this.#read = read;
    this.#reading = new FailureReporter(onUnreadable, onReadable);
    this.#scheduler = scheduler;
  }

  /** Polls every quarter of a second. `afterPoll` is called after each poll, also after one that hangs. */
  repeat(afterPoll: () => void): RepeatedWork {
    const work = async () => {
      if (this.#running >= MAX_POLLS) return POLL_EVERY_MS;
      const isDone = await this.#pollFor(POLL_EVERY_MS);
      afterPoll();
      return isDone ? POLL_EVERY_MS : 0;
    };
    return repeat(POLL_EVERY_MS, work, this.#scheduler);
  }

  async poll(): Promise<void> {
    const startedAt = this.#scheduler.now();
    this.#running++;
    try {
      await this.#read();
      if (startedAt >= this.#readAt) this.#readAt = startedAt;
      this.#currentUntil = Math.max(this.#currentUntil, startedAt + CURRENT_FOR_MS);
      this.#reading.succeeded();
    } catch (error) {
      // A later poll shows the present state.
      if (startedAt < this.#readAt) return;
      this.#reading.failed(error);
      this.#failedAt = this.#scheduler.now();
    } finally {
      this.#running--;
    }
  }

  whenCurrent(now: number): Promise<void> | undefined {
    if (now <= this.#currentUntil) return undefined;
    return (this.#catchingUp ??= this.#catchUp().finally(() => (this.#catchingUp = undefined)));
  }

  /** In an outage that this process has noticed, one attempt shows whether it is over. */
  async #catchUp(): Promise<void> {
    const scheduler = this.#scheduler;
    const isOutage = scheduler.now() - this.#failedAt < CURRENT_FOR_MS;
    const deadline = scheduler.now() + MAX_WAIT_MS;
    for (;;) {
      const startedAt = scheduler.now();
      await this.#pollFor(POLL_EVERY_MS);
      const now = scheduler.now();
      if (now <= this.#currentUntil) return;
      // This process was paused meanwhile.
      if (now - startedAt > CURRENT_FOR_MS) return this.#catchUp();
      if (isOutage || now >= deadline) break;
      await scheduler.sleep(RETRY_MS);
    }
    this.#currentUntil = scheduler.now() + CURRENT_FOR_MS;
  }

  /** Polls, and resolves to whether the poll has ended within the time. Otherwise it goes on. */
  #pollFor(ms: number): Promise<boolean> {
    const poll = this.poll();
    return new Promise((resolve) => {
      const timer = this.#scheduler.setTimeout(() => resolve(false), ms);
      timer.unref();
      void poll.then(() => {
        timer.close();
        resolve(true);
      });
    });
  }
}
