import { contestant, type ContestantId, does } from "./contestants.ts";
import type { Meter } from "./measure.ts";
import type { Progress } from "./progress.ts";
import type { Cell } from "./results.ts";
import type { Server } from "./servers.ts";
import { takeTurns, turnName, WARM_UP } from "./turns.ts";
import { workOf, type WorkId } from "./work.ts";

export interface ContestOptions {
  readonly meter: Meter;
  readonly servers: readonly Server[];
  readonly works: readonly WorkId[];
  readonly seconds: number;
  readonly rounds: number;
  readonly progress: Progress;
}

const WARM_UP_SECONDS = 1;

/** How many steps of progress the contest takes. */
export function contestSteps(
  ids: readonly ContestantId[],
  { works, rounds }: { works: readonly WorkId[]; rounds: number },
): number {
  const pairs = works.map((work) => ids.filter((id) => does(contestant(id), work)).length);
  return pairs.reduce((sum, count) => sum + count, 0) * (rounds + 1);
}

/** Every server that can, at every work, as fast as it answers. */
export async function holdContest(options: ContestOptions): Promise<Cell[]> {
  const { meter, works, seconds, rounds, progress } = options;
  const cells: Cell[] = [];
  for (const id of works) {
    const work = workOf(id);
    const able = options.servers.filter((server) => does(contestant(server.id), id));
    const samples = await takeTurns(able, rounds, (server, round) => {
      progress.step(`${work.title} · ${server.id} · ${turnName(round)}`);
      return meter.round(server, work, { seconds: round === WARM_UP ? WARM_UP_SECONDS : seconds });
    });
    for (const [server, taken] of samples) cells.push({ work: id, server: server.id, samples: taken });
  }
  return cells;
}
