import { Unavailable } from "../contract/errors.ts";

interface Waiting {
  readonly endsAt: number;
  readonly fail: (error: unknown) => void;
  isOver: boolean;
  older: Waiting | undefined;
  newer: Waiting | undefined;
}

/**
 * A request that has come is never timed out, so every answer that is waited for gets a deadline.
 * All last equally long, so they end in the order they began: one timer for the oldest serves them all. They are
 * linked to one another by hand, since putting each into a Set and taking it out again costs 5 µs.
 */
export class Deadlines {
  #oldest: Waiting | undefined;
  #newest: Waiting | undefined;
  #timer: Timer | undefined;

  constructor(private readonly lengthMs: number) {}

  /** What `work` gives, or what `onFault` makes of its failure or of its taking too long. */
  bound<T>(work: Promise<T>, onFault: (error: unknown) => T): Promise<T> {
    return new Promise<T>((resolve) => {
      const fail = (error: unknown) => {
        if (this.#leave(waiting)) resolve(onFault(error));
      };
      const waiting = this.#enter(fail);
      work.then((value) => {
        if (this.#leave(waiting)) resolve(value);
      }, fail);
    });
  }

  #enter(fail: (error: unknown) => void): Waiting {
    const endsAt = performance.now() + this.lengthMs;
    const waiting = { endsAt, fail, isOver: false, older: this.#newest, newer: undefined };
    if (this.#newest === undefined) this.#oldest = waiting;
    else this.#newest.newer = waiting;
    this.#newest = waiting;
    if (this.#timer === undefined) this.#timer = this.#arm(this.lengthMs);
    return waiting;
  }

  /** False when it is over already. */
  #leave(waiting: Waiting): boolean {
    if (waiting.isOver) return false;
    waiting.isOver = true;
    const { older, newer } = waiting;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    return true;
  }

  #arm(delayMs: number): Timer {
    const timer = setTimeout(() => this.#expire(), delayMs);
    timer.unref();
    return timer;
  }

  #expire(): void {
    this.#timer = undefined;
    const now = performance.now();
    while (this.#oldest !== undefined) {
      const { endsAt, fail } = this.#oldest;
      if (endsAt > now) {
        this.#timer = this.#arm(endsAt - now);
        return;
      }
      fail(new Unavailable(`no answer within ${this.lengthMs} ms`));
    }
  }
}
