interface BudgetOptions {
  readonly max: number;
  readonly perSecond: number;
  /** In milliseconds. */
  readonly now?: () => number;
}

/** How often something may happen: `max` times at once, then as often as it refills (a token bucket). */
export class Budget {
  readonly #options: BudgetOptions;
  readonly #now: () => number;
  #left: number;
  #refilledAt: number;
  #suppressed = 0;

  constructor(options: BudgetOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#left = options.max;
    this.#refilledAt = this.#now();
  }

  /** Whether it may happen now. Leaves `reserve` to others. */
  take(reserve = 0): boolean {
    const { max, perSecond } = this.#options;
    const now = this.#now();
    this.#left = Math.min(max, this.#left + ((now - this.#refilledAt) * perSecond) / 1000);
    this.#refilledAt = now;
    if (this.#left < 1 + reserve) return false;
    this.#left--;
    return true;
  }

  /** Reports an event, or counts it. `report` gets the number of events since the last one that were only counted. */
  spend(report: (suppressed: number) => void): void {
    if (!this.take()) {
      this.#suppressed++;
      return;
    }
    report(this.#suppressed);
    this.#suppressed = 0;
  }
}
