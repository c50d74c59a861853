import type { Config } from "../config/config.ts";
import { grouped } from "../contract/formatting.ts";
import { maxConnectionsWithin } from "../http1/connection-limits.ts";
import { check, type Finding } from "./finding.ts";

const openFiles = check("open files");
const clock = check("clock");

/** A server that is not told how many connections to accept does with fewer than it could. */
const ENOUGH_CONNECTIONS = 10_000;

export function checkOpenFiles(
  { maxConnections }: Pick<Config, "maxConnections">,
  possible = maxConnectionsWithin(maxConnections),
): Finding {
  const wanted = maxConnections ?? ENOUGH_CONNECTIONS;
  if (possible >= wanted) return openFiles.ok(`the limit allows ${grouped(possible)} connections`);
  return openFiles.warning(
    `the limit allows ${grouped(possible)} of ${grouped(wanted)} connections`,
    "raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 in a shell",
  );
}

/** A clock before this release is wrong. */
const RELEASED_AT = Date.UTC(2026, 10, 1);
const CLOCK_TOLERANCE_MS = 2_000;

export interface ClockComparison {
  /** Such as `PostgreSQL`. */
  readonly name: string;
  /** Its clock minus ours. */
  readonly differenceMs: number;
}

export interface ClockOptions {
  readonly now: number;
  /** The newest time in the data. */
  readonly newestTime: number | undefined;
  readonly comparisons: readonly ClockComparison[];
}

const SYNCHRONIZE = "synchronize the clock with NTP: timedatectl set-ntp true";

export function checkClock({ now, newestTime, comparisons }: ClockOptions): Finding[] {
  const today = new Date(now).toISOString();
  if (now < RELEASED_AT)
    return [clock.error(`it is ${today} by this machine, before this release was made`, SYNCHRONIZE)];
  const findings = comparisons
    .filter(({ differenceMs }) => Math.abs(differenceMs) > CLOCK_TOLERANCE_MS)
    .map(({ name, differenceMs }) => {
      const seconds = (Math.abs(differenceMs) / 1000).toFixed(1);
      return clock.warning(
        `the clock of ${name} is ${seconds} s ${differenceMs > 0 ? "ahead of" : "behind"} this machine's`,
        `${SYNCHRONIZE}, on both machines`,
      );
    });
  if (newestTime !== undefined && newestTime > now + CLOCK_TOLERANCE_MS) {
    const message = `the data has a key of ${new Date(newestTime).toISOString()}, which is later than now (${today})`;
    findings.push(clock.warning(message, SYNCHRONIZE));
  }
  return findings.length > 0 ? findings : [clock.ok(`it is ${today}`)];
}
