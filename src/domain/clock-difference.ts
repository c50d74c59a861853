import { grouped } from "../text/formatting.ts";

/** A greater difference of two clocks means that one of them is wrong. Clocks that follow NTP differ by less. */
export const CLOCK_TOLERANCE_MS = 2_000;

/** What is wrong with the clock of a server; undefined if nothing is, or if that is not known. */
export function clockProblem(aheadMs: number | null | undefined): string | undefined {
  if (aheadMs === null || aheadMs === undefined || Math.abs(aheadMs) <= CLOCK_TOLERANCE_MS) return undefined;
  const direction = aheadMs > 0 ? "ahead of" : "behind";
  return `its clock is ${grouped(Math.round(Math.abs(aheadMs) / 1_000))} s ${direction} that of PostgreSQL`;
}
