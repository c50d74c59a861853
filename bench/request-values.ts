import { encodeCursor } from "../src/api/cursor.ts";

const MAX_VALUES = 100_000;
const BODIES = 1_000;
/** A cursor this close to the end begins a page that is not full. */
const TAIL = 21;

/** Spread evenly over the table and shuffled: a value is repeated only after all others were used. */
export function requestValues(pets: number) {
  const cursors = spread(pets - TAIL);
  return {
    opaqueCursors: cursors.map((after) => encodeCursor("pets", BigInt(after))),
    /** The peers' own. */
    plainCursors: cursors.map(String),
    ids: spread(pets).map(String),
    bodies: Array.from({ length: BODIES }, (_, n) => petBody(n)),
  };
}

/** All have the same length, so that one Content-Length fits. */
function petBody(n: number): string {
  const name = `Rex ${String(n).padStart(4, "0")}`;
  return JSON.stringify({ name, categoryId: 10 + (n % 90), status: "available" });
}

function spread(max: number): number[] {
  const count = Math.min(max, MAX_VALUES);
  return shuffled(Array.from({ length: count }, (_, i) => Math.floor((i * max) / count) + 1));
}

/** The same order in every run: Fisher-Yates with a linear congruential generator. */
function shuffled(numbers: number[]): number[] {
  let state = 42;
  for (let i = numbers.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const j = state % (i + 1);
    [numbers[i], numbers[j]] = [numbers[j] ?? 0, numbers[i] ?? 0];
  }
  return numbers;
}
