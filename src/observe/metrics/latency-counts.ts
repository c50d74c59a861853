/**
 * Durations by microseconds, in buckets of which eight follow each power of two. So a quantile is exact to 6 %, which
 * the few buckets of a Prometheus histogram are not.
 */
export const LATENCY_BUCKETS = 232;

const MAX_MICROSECONDS = 2 ** 31 - 1;

/** Up to 8 µs a bucket for each microsecond, from there on eight for each power of two. */
export function latencyBucket(ms: number): number {
  const us = Math.min(ms * 1000, MAX_MICROSECONDS) | 0;
  if (us < 8) return us < 0 ? 0 : us;
  const exponent = 31 - Math.clz32(us);
  return ((exponent - 2) << 3) + ((us >>> (exponent - 3)) & 7);
}

/** The middle of a bucket, in milliseconds. */
function middleOf(bucket: number): number {
  if (bucket < 8) return (bucket + 0.5) / 1000;
  const width = 2 ** ((bucket >>> 3) - 1);
  return (width * (8 + (bucket & 7)) + width / 2) / 1000;
}

/** In milliseconds; undefined if nothing was counted. */
export function latencyQuantile(counts: Float64Array | Uint32Array, quantile: number): number | undefined {
  let total = 0;
  for (const count of counts) total += count;
  if (total === 0) return undefined;
  const rank = Math.max(1, Math.ceil(total * quantile));
  let bucket = 0;
  for (let seen = counts[0] ?? 0; seen < rank; seen += counts[bucket] ?? 0) bucket++;
  return middleOf(bucket);
}
