import { PROTECTED, type Shelf } from "./shelf.ts";

/** One for the newcomer and one more, so that a bound that had to give way is reached again in time. */
const MOST_DROPPED = 2;

/**
 * Makes room for a newcomer at the bound. What has expired goes first, then the address with the fewest requests to
 * its count, then the key with the fewest; each the best of a sample. A key that is banned or has spent a window is
 * never lost: it would get its quota twice. Where there is nothing else the bound gives way, by no more than the
 * keys that an operator has made, and by an address only until that one can be dropped for the next.
 */
export function makeRoom(shelves: readonly Shelf[], maxSubjects: number, now: number): void {
  for (let i = 0; i < MOST_DROPPED && sizeOf(shelves) >= maxSubjects; i++) dropCheapest(shelves, now);
}

function sizeOf(shelves: readonly Shelf[]): number {
  return shelves.reduce((sum, { slots }) => sum + slots.size, 0);
}

function dropCheapest(shelves: readonly Shelf[], now: number): void {
  const candidates = shelves.map((shelf) => ({ shelf, ...shelf.sample(now) }));
  const cheapest = candidates.reduce((best, other) => (other.cost < best.cost ? other : best));
  if (cheapest.cost < PROTECTED) cheapest.shelf.drop(cheapest.slot);
}
