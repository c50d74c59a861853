export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** A figure of several rounds: the middle one, and how far they lay apart. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/**
 * Round by round, then the middle: what disturbs the machine for some seconds hits both sides of the same round, and
 * leaves their ratio nearly as it was.
 */
export function ratioOf(ours: readonly number[], theirs: readonly number[]): Spread {
  const rounds = Math.min(ours.length, theirs.length);
  const ratios = Array.from(
    { length: rounds },
    (_, i) => (ours[i] ?? Number.NaN) / (theirs[i] ?? Number.NaN),
  );
  return spreadOf(ratios);
}
