import { DAY_MS, HOUR_MS } from "../text/time-units.ts";

export interface BanRules {
  /** The number of strikes that leads to a ban. */
  readonly strikes: number;
  /**
   * Rejections this soon after the first one, or after a strike, are not strikes: the requests may have been in flight,
   * and several workers may learn of the same limit.
   */
  readonly graceMs: number;
  /** The length of a first ban. A ban within 24 hours of the end of the last one is twice as long as that one. */
  readonly lengthMs: number;
  /** The length of the longest ban; at least `lengthMs`. */
  readonly maxLengthMs: number;
}

export const DEFAULT_BAN: BanRules = {
  strikes: 10,
  graceMs: 1_000,
  lengthMs: 300_000,
  maxLengthMs: 2_400_000,
};

/** The longest ban that a server can be configured to. */
export const LONGEST_BAN_MS = 30 * DAY_MS;

/** The rules of commands, which do not know those of the servers. They shorten no ban. */
export const COMMAND_BAN_RULES: BanRules = { ...DEFAULT_BAN, maxLengthMs: LONGEST_BAN_MS };

/** What each of the rules can be. */
export const BAN_BOUNDS = {
  strikes: { min: 1, max: 1_000_000 },
  graceMs: { min: 0, max: HOUR_MS },
  lengthMs: { min: 1_000, max: LONGEST_BAN_MS },
  maxLengthMs: { min: 1_000, max: LONGEST_BAN_MS },
} as const;
