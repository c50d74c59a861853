import { Unavailable } from "../contract/errors.ts";

/**
 * The runtime never times out a request whose body has arrived, so every answer that is waited for gets a deadline.
 * All last equally long, so they end in the order they began: one timer for the oldest serves them all.
 */
export class Deadlines {
  #waiting = new Set<{ readonly endsAt: number; readonly expire: () => void }>();
  #timer: Timer | undefined;

  constructor(private readonly lengthMs: number) {}

  race<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const entry = {
        endsAt: performance.now() + this.lengthMs,
        expire: () => reject(new Unavailable(`no answer within ${this.lengthMs} ms`)),
      };
      this.#waiting.add(entry);
      if (this.#timer === undefined) this.#timer = this.#arm(this.lengthMs);
      const leave = () => this.#waiting.delete(entry);
      work.then(
        (value) => (leave(), resolve(value)),
        (error) => (leave(), reject(error)),
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
