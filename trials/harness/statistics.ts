export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The quantile `q`, from 0 to 1. */
export function quantile(values: ArrayLike<number>, q: number): number {
  const sorted = Float64Array.from(values).toSorted();
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/**
 * The spread of the ratios of all rounds. A disturbance of the machine for some seconds affects both sides of a round,
 * and leaves their ratio nearly unchanged.
 */
export function ratioOf(numerators: readonly number[], denominators: readonly number[]): Spread {
  const rounds = Math.min(numerators.length, denominators.length);
  return spreadOf(numerators.slice(0, rounds).map((value, i) => value / (denominators[i] ?? Number.NaN)));
}

export function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** Formats counts, such as "3 × timeout". */
export function countTexts(counts: Readonly<Record<string, number>>): string[] {
  return Object.entries(counts).map(([name, count]) => `${count} × ${name}`);
}
