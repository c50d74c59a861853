import type { ContestantId } from "./contestants.ts";
import type { Sample } from "./measure.ts";
import type { Cell } from "./results.ts";
import type { WorkId } from "./work.ts";

/** Everyone has a turn, another one first each time, so that noise and order fall on all alike. */
export function inTurn<T>(entrants: readonly T[], round: number): T[] {
  const start = entrants.length === 0 ? 0 : round % entrants.length;
  return [...entrants.slice(start), ...entrants.slice(0, start)];
}

/** What the rounds find, by work and server, in the order in which the tables show them. */
export class Scores {
  readonly #cells: (Cell & { readonly samples: Sample[] })[];

  constructor(works: readonly WorkId[], serversOf: (work: WorkId) => readonly ContestantId[]) {
    this.#cells = works.flatMap((work) => serversOf(work).map((server) => ({ work, server, samples: [] })));
  }

  add(work: WorkId, server: ContestantId, sample: Sample): void {
    this.#cells.find((cell) => cell.work === work && cell.server === server)?.samples.push(sample);
  }

  get cells(): readonly Cell[] {
    return this.#cells;
  }
}
