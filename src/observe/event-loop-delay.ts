import { type ScheduledTimer, scheduler } from "../runtime/scheduler.ts";
import { Histogram } from "./histogram.ts";

/** The bounds of the delays, in seconds. */
const DELAY_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const SAMPLE_EVERY_MS = 20;
/** The length of a period. The longest delay is that of the current period and the one before. */
const PERIOD_MS = 30_000;

/** Measures how much later than requested a timer fires. A new request waits as long before it is processed. */
export class EventLoopDelay {
  readonly seconds = new Histogram(DELAY_BOUNDS);
  #lastAt: number;
  #periodEndsAt: number;
  #longest = 0;
  #longestBefore = 0;
  #timer: ScheduledTimer | undefined;

  /** `now` returns milliseconds. */
  constructor(private readonly now = () => scheduler.now()) {
    this.#lastAt = now();
    this.#periodEndsAt = this.#lastAt + PERIOD_MS;
  }

  start(): void {
    this.#lastAt = this.now();
    this.#timer = scheduler.setInterval(() => this.sample(), SAMPLE_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    this.#timer?.close();
  }

  /** Called by the timer. */
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

  /** The longest delay of the last 30 to 60 seconds. */
  get longestSeconds(): number {
    return Math.max(this.#longest, this.#longestBefore);
  }
}
