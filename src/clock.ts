import type { Clock } from "./domain/ports/clock.ts";

/** A greater difference between the clocks is a step of the machine's clock. A smaller one is drift. */
const STEP_MS = 2_000;
/**
 * The most by which a check corrects a drift of the steady clock. That is twice the drift of a quartz, and only six
 * milliseconds in a minute, so that a request after the wait in Retry-After is allowed.
 */
const SLEW_MS = 0.1;
const CHECK_EVERY_MS = 1_000;

interface Sources {
  /** Returns milliseconds since the epoch, by the machine's clock. */
  wall(): number;
  /** Returns milliseconds of a monotonic clock. */
  elapsed(): number;
  onStep(byMs: number): void;
}

/**
 * The wall clock is the machine's. The steady clock starts with it, continues by the monotonic clock, and is slewed as
 * the two drift apart. When the machine's clock is set, the steady clock continues and the step is reported.
 */
export function createClock({
  wall = Date.now,
  elapsed = () => performance.now(),
  onStep,
}: Partial<Sources> = {}): Clock {
  let offset = wall() - elapsed();
  let stepMs = 0;
  let checkedAt = elapsed();

  function check(ms: number): void {
    checkedAt = ms;
    const drift = wall() - (ms + offset + stepMs);
    if (Math.abs(drift) <= STEP_MS) {
      offset += Math.max(-SLEW_MS, Math.min(SLEW_MS, drift));
    } else {
      const byMs = Math.round(drift);
      stepMs += byMs;
      onStep?.(byMs);
    }
  }

  return {
    now: wall,
    steadyNow() {
      const ms = elapsed();
      if (ms - checkedAt >= CHECK_EVERY_MS) check(ms);
      return Math.floor(ms + offset);
    },
    get stepMs() {
      return stepMs;
    },
  };
}
