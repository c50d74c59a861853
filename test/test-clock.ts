import type { Clock } from "../src/domain/ports/clock.ts";

/** A clock that moves only when a test moves it. */
export class TestClock implements Clock {
  stepMs = 0;

  /** `time` is that of the steady clock. */
  constructor(public time = Date.parse("2026-11-15T12:00:00Z")) {}

  now(): number {
    return this.time + this.stepMs;
  }

  /** The time after so many milliseconds, as RFC 3339. */
  timeIn(ms: number): string {
    return new Date(this.now() + ms).toISOString();
  }

  steadyNow(): number {
    return this.time;
  }

  /** Lets time pass. */
  advance(ms: number): void {
    this.time += ms;
  }

  /** Sets the machine's clock forward or back; no time passes. */
  step(byMs: number): void {
    this.stepMs += byMs;
  }
}
