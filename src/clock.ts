import type { Clock } from "./domain/ports.ts";

/** Beyond this a difference is a step of the machine's clock, not drift, and is not followed. */
const STEP_MS = 2_000;
/**
 * At most this much of a drift is taken over at each look: twice what a quartz is off by, and six milliseconds in a
 * minute, so that whoever waits as long as they were told still gets in.
 */
const SLEW_MS = 0.1;
const LOOK_EVERY_MS = 1_000;

interface Sources {
  /** Wall clock, ms since the epoch; may step. */
  wall(): number;
  /** Monotonic, ms since whenever. */
  elapsed(): number;
  onStep(byMs: number): void;
}

/**
 * The service's own clock: wall time as it was at the start, carried on by the monotonic clock and slewed towards
 * the wall as that drifts. If the machine's clock is set while the service runs, windows keep their length and no
 * quota is given twice; the step is reported, and taken over at the next start.
 */
export function steadyClock({
  wall = Date.now,
  elapsed = () => performance.now(),
  onStep,
}: Partial<Sources> = {}): Clock {
  let offset = wall() - elapsed();
  let lookedAt = elapsed();
  let reportedStep = 0;

  function look(ms: number): void {
    lookedAt = ms;
    const drift = wall() - (ms + offset);
    if (Math.abs(drift) <= STEP_MS) {
      offset += Math.max(-SLEW_MS, Math.min(SLEW_MS, drift));
      reportedStep = 0;
    } else if (Math.abs(drift - reportedStep) > STEP_MS) {
      reportedStep = drift;
      onStep?.(drift);
    }
  }

  return {
    now() {
      const ms = elapsed();
      if (ms - lookedAt >= LOOK_EVERY_MS) look(ms);
      return Math.floor(ms + offset);
    },
  };
}
