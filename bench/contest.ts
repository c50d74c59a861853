import type { Arena } from "./arena.ts";
import { contestant, type ContestantId, does } from "./contestants.ts";
import type { Progress } from "./progress.ts";
import type { Cell } from "./results.ts";
import { inTurn, Scores } from "./turns.ts";
import { workOf, type WorkId } from "./work.ts";

export interface ContestOptions {
  readonly arena: Arena;
  readonly works: readonly WorkId[];
  readonly seconds: number;
  readonly rounds: number;
  readonly progress: Progress;
}

const WARM_UP_SECONDS = 2;

/** How many steps of progress the contest takes. */
export function contestSteps(
  ids: readonly ContestantId[],
  { works, rounds }: { works: readonly WorkId[]; rounds: number },
): number {
  const pairs = works.map((work) => ableAt(work, ids).length);
  return (ids.length + pairs.reduce((sum, count) => sum + count, 0)) * rounds;
}

/** Every server that can, at every work, as fast as it answers; in each round all of them are started anew. */
export async function holdContest(options: ContestOptions): Promise<readonly Cell[]> {
  const { arena, works, seconds, rounds, progress } = options;
  const scores = new Scores(works, (work) => ableAt(work, arena.ids));
  for (let round = 1; round <= rounds; round++) {
    const servers = await arena.start(arena.ids);
    for (const id of works) {
      const work = workOf(id);
      const able = servers.filter((server) => does(contestant(server.id), id));
      for (const server of inTurn(able, round)) {
        progress.step(`round ${round} of ${rounds} · ${work.title} · ${server.id}`);
        await arena.meter.round(server, work, { seconds: WARM_UP_SECONDS });
        scores.add(id, server.id, await arena.meter.round(server, work, { seconds }));
      }
    }
  }
  return scores.cells;
}

function ableAt(work: WorkId, ids: readonly ContestantId[]): ContestantId[] {
  return ids.filter((id) => does(contestant(id), work));
}
