const MAX_EVENTS = 100;
const EVENTS_PER_SECOND = 10;

/** Bounds how often an event is logged: the first hundred, then ten a second. */
export class EventBudget {
  #left = MAX_EVENTS;
  #refilledAt: number;
  #suppressed = 0;

  /** In milliseconds. */
  constructor(private readonly now = () => performance.now()) {
    this.#refilledAt = now();
  }

  /** Logs the event, or counts it. `log` gets the number of events since the last one that were only counted. */
  spend(log: (suppressed: number) => void): void {
    const now = this.now();
    this.#left = Math.min(MAX_EVENTS, this.#left + ((now - this.#refilledAt) * EVENTS_PER_SECOND) / 1000);
    this.#refilledAt = now;
    if (this.#left < 1) {
      this.#suppressed++;
      return;
    }
    this.#left--;
    log(this.#suppressed);
    this.#suppressed = 0;
  }
}
