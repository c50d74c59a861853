import type { Spread } from "./statistics.ts";

export function count(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** Three digits that mean something. */
export function digits(value: number): string {
  if (value >= 1_000) return count(value);
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function withSpread({ median, min, max }: Spread, write: (value: number) => string): string {
  return `${write(median)} (${write(min)}–${write(max)})`;
}
