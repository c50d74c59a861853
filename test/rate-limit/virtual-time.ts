import type { Clock } from "../../src/domain/ports.ts";
import type { ScheduledTimer, Scheduler } from "../../src/event-loop.ts";
import { settle } from "../fake-timers.ts";

interface DueWork {
  readonly at: number;
  readonly work: () => void;
}

/** Clocks and timers that move only when a test moves them. */
export class VirtualTime implements Scheduler, Clock {
  stepMs = 0;
  readonly #due = new Set<DueWork>();

  constructor(public time = Date.parse("2026-11-15T12:00:00Z")) {}

  now = () => this.time;
  steadyNow = () => this.time;
  random = () => 0.5;
  setImmediate = (work: () => void) => void this.setTimeout(work, 0);
  sleep = (ms: number) => new Promise<void>((resolve) => void this.setTimeout(resolve, ms));
  yield = () => this.sleep(0);

  setTimeout(work: () => void, ms: number): ScheduledTimer {
    const due = { at: this.time + ms, work };
    this.#due.add(due);
    return { close: () => this.#due.delete(due), unref() {} };
  }

  setInterval(work: () => void, ms: number): ScheduledTimer {
    let timer: ScheduledTimer;
    const again = () => {
      timer = this.setTimeout(again, ms);
      work();
    };
    timer = this.setTimeout(again, ms);
    return { close: () => timer.close(), unref() {} };
  }

  /** Lets time pass, from one timer to the next. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    for (;;) {
      await settle();
      const [next] = [...this.#due].filter(({ at }) => at <= end).toSorted((one, other) => one.at - other.at);
      if (next === undefined) break;
      this.#due.delete(next);
      this.time = Math.max(this.time, next.at);
      next.work();
    }
    this.time = end;
    await settle();
  }
}
