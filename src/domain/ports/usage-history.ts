import type { Awaitable } from "../../runtime/awaitable.ts";
import type { KeyTotals, KeyTotalsQuery, UsageBatch, UsageQuery, UsageRow } from "../usage-history.ts";

/** Requests by key, operation and hour or day, of all servers on the database. */
export interface UsageHistoryStore {
  /** Adds all of the counts or none, to the hour and to its day. Adds nothing if the batch was added before. */
  addUsage(batch: UsageBatch): Promise<void>;
  /** Returns rows in the order of interval and operation. Intervals without requests have no row. */
  readUsage(query: UsageQuery): Awaitable<readonly UsageRow[]>;
  /** Returns the totals of each key that was used in the period, those with the most requests first. */
  usageByKey(query: KeyTotalsQuery): Awaitable<readonly KeyTotals[]>;
  /** Returns when each key was last used, in milliseconds since the epoch. */
  lastUsed(keyIds: readonly number[]): Awaitable<ReadonlyMap<number, number>>;
  /** Counts the keys that have called a deprecated operation since this time, to two seconds. */
  countDeprecatedUse(since: number): Awaitable<number>;
  /** Deletes some of the hours and days that are too old to be kept; returns whether there are more. */
  deleteOldUsage(now: number): Promise<boolean>;
}
