import { Histogram } from "./histogram.ts";

/** In seconds. */
const DELAY_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const SAMPLE_EVERY_MS = 20;
/** The longest delay is that of the current half minute and the one before it. */
const PERIOD_MS = 30_000;

/** How much later than asked a timer fires: as long as a new request waits before it is looked at. */
export class EventLoopDelay {
  readonly seconds = new Histogram(DELAY_BOUNDS);
  #lastAt: number;
  #periodEndsAt: number;
  #longest = 0;
  #longestBefore = 0;
  #timer: Timer | undefined;

  /** `now` in milliseconds. */
  constructor(private readonly now = () => performance.now()) {
    this.#lastAt = now();
    this.#periodEndsAt = this.#lastAt + PERIOD_MS;
  }

  start(): void {
    this.#lastAt = this.now();
    this.#timer = setInterval(() => this.sample(), SAMPLE_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The timer calls it. */
  sample(): void {
    const now = this.now();
    const delay = Math.max(0, now - this.#lastAt - SAMPLE_EVERY_MS) / 1000;
    this.#lastAt = now;
    this.seconds.observe(delay);
    if (now >= this.#periodEndsAt) {
      this.#longestBefore = this.#longest;
      this.#longest = 0;
      this.#periodEndsAt = now + PERIOD_MS;
    }
    this.#longest = Math.max(this.#longest, delay);
  }

  /** In the last half minute to minute. */
  get longestSeconds(): number {
    return Math.max(this.#longest, this.#longestBefore);
  }
}
