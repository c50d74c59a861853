import { AdmissionFilter } from "../bounded-cache.ts";
import { Overloaded, type Unavailable } from "../contract/errors.ts";
import type { Awaitable } from "../domain/awaitable.ts";
import type { Clock } from "../domain/ports.ts";
import { hashText } from "../hash-index.ts";

const MAX_RUNNING = 16;
const MAX_WAITING = 1_000;

/**
 * Look-ups of secrets that were never verified. Anybody can send such secrets, so few look-ups run at a time, and only
 * as many wait as the key store finishes in a fraction of a second.
 */
export class LookUpQueue {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** Look-ups that wait. */
  get length(): number {
    return this.#waiting.length;
  }

  /** `mayRun` is asked at once, and again after a wait: the client may have reached its limit meanwhile. */
  run<T>(work: () => Awaitable<T>, mayRun: () => boolean): Awaitable<T | Unavailable> {
    if (!mayRun()) return tooMany();
    if (this.#running < MAX_RUNNING) return this.#start(work);
    if (this.#waiting.length >= MAX_WAITING) return tooMany();
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve(mayRun() ? Promise.try(() => this.#start(work)) : tooMany()));
    });
  }

  #start<T>(work: () => Awaitable<T>): Awaitable<T> {
    this.#running++;
    let isPending = false;
    try {
      const result = work();
      if (!(result instanceof Promise)) return result;
      isPending = true;
      return result.finally(() => this.#finish());
    } finally {
      if (!isPending) this.#finish();
    }
  }

  #finish(): void {
    this.#running--;
    while (this.#running < MAX_RUNNING && this.#waiting.length > 0) this.#waiting.shift()?.();
  }
}

function tooMany(): Unavailable {
  return new Overloaded("too many keys are being looked up");
}

const PER_SECOND = 100;
/** Secrets that are sent for the first time leave these to others. */
const RESERVED = 50;
const REMEMBERED_SECRETS = 65_536;

/**
 * Look-ups for clients whose address is at its limit: without them, a new key would not work behind an address from
 * which others send invalid keys. Secrets that are sent again come first, as a valid key is and guesses are not.
 */
export class LookUpBudget {
  readonly #clock: Pick<Clock, "steadyNow">;
  readonly #sentBefore = new AdmissionFilter(REMEMBERED_SECRETS);
  #left = PER_SECOND;
  #refilledAt: number;

  constructor(clock: Pick<Clock, "steadyNow">) {
    this.#clock = clock;
    this.#refilledAt = clock.steadyNow();
  }

  /** Whether the secret may be looked up now. */
  take(secret: string): boolean {
    const now = this.#clock.steadyNow();
    this.#left = Math.min(PER_SECOND, this.#left + ((now - this.#refilledAt) * PER_SECOND) / 1000);
    this.#refilledAt = now;
    const needed = this.#sentBefore.admits(hashText(secret) >>> 0) ? 1 : 1 + RESERVED;
    if (this.#left < needed) return false;
    this.#left--;
    return true;
  }
}
