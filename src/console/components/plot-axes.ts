/* The numbers at the axes of a plot. */

import type uPlot from "uplot";
import { greatestOf, type PlotProps, stepOf } from "./plot-data.ts";

/** The splits of an axis that measure something: zeros have a zero, and what has no data has no scale. */
export function measured(splits: number[], { series }: PlotProps): (number | null)[] {
  const greatest = greatestOf(series);
  return greatest > 0 ? splits : splits.map((split) => (split === greatest ? split : null));
}

/** uPlot has none of two minutes. */
export const TIME_STEPS = [
  5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800,
];

const TOPS = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10, 12];

/** The end of an axis that begins with zero, a little above the values: it and its half are round numbers. */
export function topOf(max: number, isCount: boolean): number {
  const unit = 10 ** Math.floor(Math.log10(max || 1));
  const isRound = (top: number) => top >= max * 1.02 && (!isCount || top % 2 === 0);
  return TOPS.map((digits) => digits * unit).find(isRound) ?? max;
}

/** Whole powers of ten around the values. */
export function decades(min: number | null, max: number | null): [number, number] {
  const low = 10 ** Math.floor(Math.log10(min || 0.1));
  return [low, Math.max(10 ** Math.ceil(Math.log10(max || 1)), low * 10)];
}

export function powersOfTen(_plot: uPlot, _axis: number, min: number, max: number): number[] {
  const [low, high] = [Math.round(Math.log10(min)), Math.round(Math.log10(max))];
  return Array.from({ length: high - low + 1 }, (_, i) => Number((10 ** (low + i)).toPrecision(3)));
}

/** The range of bars: the first and the last one have as much room as the others. */
export function rangeOfBars(times: readonly number[]): [number, number] {
  const half = stepOf(times) / 2;
  return [(times[0] ?? 0) - half, (times.at(-1) ?? 0) + half];
}
