export interface TokenBucketOptions {
  readonly max: number;
  readonly perSecond: number;
  /** Returns milliseconds. */
  readonly now?: () => number;
}

/** Limits how often something happens: `max` times at once, then `perSecond` times a second. */
export class TokenBucket {
  readonly #options: TokenBucketOptions;
  readonly #now: () => number;
  #left: number;
  #refilledAt: number;
  #suppressed = 0;

  constructor(options: TokenBucketOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#left = options.max;
    this.#refilledAt = this.#now();
  }

  /** Takes a token, or `count`, and returns true, if so many are left besides the `reserve` for other callers. */
  take({ count = 1, reserve = 0 } = {}): boolean {
    const { max, perSecond } = this.#options;
    const now = this.#now();
    this.#left = Math.min(max, this.#left + ((now - this.#refilledAt) * perSecond) / 1000);
    this.#refilledAt = now;
    if (this.#left < count + reserve) return false;
    this.#left -= count;
    return true;
  }

  /** Reports an event if a token is left and counts it otherwise. `report` gets how many were counted before. */
  reportOrCount(report: (suppressed: number) => void): void {
    if (!this.take()) {
      this.#suppressed++;
      return;
    }
    report(this.#suppressed);
    this.#suppressed = 0;
  }
}
