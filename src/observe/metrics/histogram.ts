/** Counts values by their size. Quantiles of several servers can be computed from the sums of their counts. */
export class Histogram {
  /** In ascending order. */
  readonly bounds: Float64Array;
  /** The first counts the values up to the first bound, the last those above every bound. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = Float64Array.from(bounds);
    this.counts = new Float64Array(bounds.length + 1);
  }

  /** Most values are small, so the search begins at the first bound. */
  observe(value: number): void {
    const { bounds, counts } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket++;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    this.sum += value;
  }
}

/** In seconds, for requests and for what they wait for: a page from memory takes microseconds. */
export const DURATION_BOUNDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;
