import type { Sample } from "./measure.ts";

export const WARM_UP = 0;

export function turnName(round: number): string {
  return round === WARM_UP ? "warm-up" : `round ${round}`;
}

/**
 * A round to warm up, whose samples are dropped, then the rounds that count. In each of them every entrant has its
 * turn, another one first each time, so that noise and order fall on all alike.
 */
export async function takeTurns<E>(
  entrants: readonly E[],
  rounds: number,
  turn: (entrant: E, round: number) => Promise<Sample>,
): Promise<Map<E, Sample[]>> {
  const samples = new Map<E, Sample[]>(entrants.map((entrant) => [entrant, []]));
  for (let round = WARM_UP; round <= rounds; round++) {
    for (const entrant of rotated(entrants, round)) {
      const sample = await turn(entrant, round);
      if (round !== WARM_UP) samples.get(entrant)?.push(sample);
    }
  }
  return samples;
}

function rotated<T>(items: readonly T[], by: number): T[] {
  const start = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}
