/** Counts values by their size. The quantiles of several servers can be computed from the sums of their counts. */
export class Histogram {
  readonly bounds: Float64Array;
  /** The first element counts the values up to the first bound, and the last one those above every bound. */
  readonly counts: Float64Array;
  sum = 0;

  /** `shownBounds` are the bounds that metrics show: some or all of them. */
  constructor(
    bounds: readonly number[],
    readonly shownBounds = bounds,
  ) {
    this.bounds = Float64Array.from(bounds);
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let bucket = 0;
    let end = bounds.length;
    while (bucket < end) {
      const middle = (bucket + end) >>> 1;
      if (value > (bounds[middle] ?? 0)) bucket = middle + 1;
      else end = middle;
    }
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    this.sum += value;
  }
}

/** The bounds in metrics, in seconds, of requests and of what they wait for. A page from memory takes microseconds. */
export const DURATION_BOUNDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;

/** The preferred numbers R20 (ISO 3). Each is about an eighth more than the one before. */
const STEPS = [
  1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9,
] as const;

/**
 * The bounds of latencies, from a microsecond to ten seconds. With them a quantile is exact to 7 %; `DURATION_BOUNDS`
 * are too few for that.
 */
const LATENCY_BOUNDS = [
  ...[-6, -5, -4, -3, -2, -1, 0].flatMap((exponent) => STEPS.map((step) => Number(`${step}e${exponent}`))),
  10,
];
export const LATENCY_BUCKETS = LATENCY_BOUNDS.length + 1;

/** A histogram of durations in seconds. Metrics show only a few of its bounds. */
export function latencyHistogram(): Histogram {
  return new Histogram(LATENCY_BOUNDS, DURATION_BOUNDS);
}

/**
 * The median and the 99th percentile, in milliseconds, from the counts of such histograms; null if nothing was counted.
 */
export function quantilesOf(counts: Float64Array | Uint32Array) {
  return { p50: quantileOf(counts, 0.5), p99: quantileOf(counts, 0.99) };
}

function quantileOf(counts: Float64Array | Uint32Array, quantile: number): number | null {
  let total = 0;
  for (const count of counts) total += count;
  if (total === 0) return null;
  const rank = Math.max(1, Math.ceil(total * quantile));
  let bucket = 0;
  for (let seen = counts[0] ?? 0; seen < rank; seen += counts[bucket] ?? 0) bucket++;
  const from = LATENCY_BOUNDS[bucket - 1] ?? 0;
  const to = LATENCY_BOUNDS[bucket] ?? from;
  return ((from + to) / 2) * 1_000;
}

export function sumOfCounts(each: readonly (Float64Array | Uint32Array)[]): Float64Array {
  const sums = new Float64Array(LATENCY_BUCKETS);
  for (const counts of each) counts.forEach((count, i) => (sums[i] = (sums[i] ?? 0) + count));
  return sums;
}
