import { Unavailable } from "../contract/errors.ts";

/**
 * The runtime never times out a request whose body has arrived, so every answer that is waited for gets a deadline.
 * All last equally long, so they end in the order they began: one timer for the oldest serves them all.
 */
export class Deadlines {
  #waiting = new Set<{ readonly endsAt: number; readonly expire: () => void }>();
  #timer: Timer | undefined;

  constructor(private readonly lengthMs: number) {}

  /** What `work` gives, or what `onFault` makes of its failure or of its taking too long. */
  bound<T>(work: Promise<T>, onFault: (error: unknown) => T): Promise<T> {
    return new Promise<T>((resolve) => {
      const fail = (error: unknown) => resolve(onFault(error));
      const entry = {
        endsAt: performance.now() + this.lengthMs,
        expire: () => fail(new Unavailable(`no answer within ${this.lengthMs} ms`)),
      };
      this.#waiting.add(entry);
      if (this.#timer === undefined) this.#timer = this.#arm(this.lengthMs);
      work.then(
        (value) => {
          if (this.#waiting.delete(entry)) resolve(value);
        },
        (error) => {
          if (this.#waiting.delete(entry)) fail(error);
        },
      );
    });
  }

  #arm(delayMs: number): Timer {
    const timer = setTimeout(() => this.#expire(), delayMs);
    timer.unref();
    return timer;
  }

  #expire(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const entry of this.#waiting) {
      if (entry.endsAt > now) {
        this.#timer = this.#arm(entry.endsAt - now);
        return;
      }
      this.#waiting.delete(entry);
      entry.expire();
    }
  }
}
