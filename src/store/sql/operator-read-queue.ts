import { Overloaded } from "../../api/errors.ts";
import { scheduler } from "../../runtime/scheduler.ts";

interface OperatorReadQueueOptions {
  /** How many reads run at a time. */
  readonly maxRunning: number;
  readonly maxWaiting?: number;
  readonly maxWaitMs?: number;
}

/** The longest time of a read of operators. With the wait, it is shorter than the 15 seconds that a console waits. */
export const MAX_OPERATOR_READ_MS = 10_000;
const MAX_WAIT_MS = 4_000;
const MAX_WAITING = 200;

/** Reads of operators: few run at a time, and the others wait in order, for a bounded time. */
export class OperatorReadQueue {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly options: OperatorReadQueueOptions) {}

  async run<T>(read: () => Promise<T>): Promise<T> {
    if (this.#running < this.options.maxRunning) this.#running++;
    else await this.#wait();
    try {
      return await read();
    } finally {
      // The next read takes this one's place.
      const start = this.#waiting.shift();
      if (start) start();
      else this.#running--;
    }
  }

  async #wait(): Promise<void> {
    const { maxWaiting = MAX_WAITING, maxWaitMs = MAX_WAIT_MS } = this.options;
    if (this.#waiting.length >= maxWaiting) throw new Overloaded(`${maxWaiting} reads of operators wait`);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const timer = scheduler.setTimeout(() => {
      const place = this.#waiting.indexOf(resolve);
      if (place === -1) return;
      this.#waiting.splice(place, 1);
      reject(new Overloaded(`reads of operators have taken more than ${maxWaitMs} ms`));
    }, maxWaitMs);
    await promise.finally(() => timer.close());
  }
}
