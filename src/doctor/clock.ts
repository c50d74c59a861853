import { CLOCK_TOLERANCE_MS } from "../domain/clock-difference.ts";
import { check, type Finding, problemsOr } from "./finding.ts";

const clock = check("clock");

/** A clock that shows an earlier time than this release is wrong. */
const RELEASED_AT = Date.UTC(2026, 10, 1);

export interface ClockComparison {
  /** The name of the other machine's service, such as `PostgreSQL`. */
  readonly name: string;
  /** The clock of that machine minus the clock of this one. */
  readonly differenceMs: number;
}

interface ClockOptions {
  readonly now: number;
  /** The newest time in the data. */
  readonly newestTime: number | undefined;
  readonly comparisons: readonly ClockComparison[];
}

const SYNCHRONIZE = "synchronize the clock with NTP: timedatectl set-ntp true";

export function checkClock({ now, newestTime = 0, comparisons }: ClockOptions): Finding[] {
  const today = new Date(now).toISOString();
  if (now < RELEASED_AT)
    return [clock.error(`it is ${today} by this machine, before this release was made`, SYNCHRONIZE)];
  const different = comparisons.filter(({ differenceMs }) => Math.abs(differenceMs) > CLOCK_TOLERANCE_MS);
  return problemsOr(clock.ok(`it is ${today}`), [
    ...different.map(({ name, differenceMs }) =>
      clock.warning(
        `the clock of ${name} is ${(Math.abs(differenceMs) / 1000).toFixed(1)} s ${differenceMs > 0 ? "ahead of" : "behind"} this machine's`,
        `${SYNCHRONIZE}, on both machines`,
      ),
    ),
    newestTime > now + CLOCK_TOLERANCE_MS &&
      clock.warning(
        `the data has a key of ${new Date(newestTime).toISOString()}, which is later than now (${today})`,
        SYNCHRONIZE,
      ),
  ]);
}
