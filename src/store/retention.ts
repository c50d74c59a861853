/** Returns the time by which old data is deleted. */
export type RetentionNow = () => number;

/**
 * The time by which a change deletes what has ended before it. The time of the change is by the clock of the machine,
 * and `retentionNow` may be earlier.
 */
export function deletionTime(at: number, retentionNow: RetentionNow = () => Infinity): number {
  return Math.min(at, retentionNow());
}
