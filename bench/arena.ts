import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { contestant, type ContestantId, does } from "./contestants.ts";
import { Meter } from "./measure.ts";
import type { Progress } from "./progress.ts";
import { type Replies, type Reply, replyOf, routeOf } from "./replies.ts";
import type { ServerFacts } from "./results.ts";
import { askOnce, checkAnswers, sameAnswer } from "./sanity.ts";
import type { Server } from "./servers.ts";
import { spend } from "./spend.ts";
import { prepareData, type Stage } from "./stage.ts";
import { startRepeatedly } from "./starts.ts";
import { type Values, valuesFor, writeValues } from "./values.ts";
import { asksOf, workOf, type WorkId } from "./work.ts";

export interface ArenaOptions {
  readonly stage: Stage;
  readonly ids: readonly ContestantId[];
  readonly works: readonly WorkId[];
  readonly animals: number;
  readonly starts: number;
  readonly progress: Progress;
}

/** All servers of the contest, up and checked. */
export interface Arena {
  readonly servers: readonly Server[];
  readonly facts: readonly ServerFacts[];
  readonly meter: Meter;
}

/** Petstore comes first, because the limits repeat what it answers. */
export async function openArena({
  stage,
  ids,
  works,
  animals,
  starts,
  progress,
}: ArenaOptions): Promise<Arena> {
  const data = await prepareData(stage, animals);
  const values = valuesFor(animals);
  const folder = join(stage.folder, "load");
  mkdirSync(folder);
  const files = writeValues(folder, values);

  const servers: Server[] = [];
  const facts: ServerFacts[] = [];
  let replies: Replies = {};
  for (const id of ["ours" as const, ...ids.filter((id) => id !== "ours")]) {
    progress.step(`starting ${contestant(id).title}`);
    const { server, startMs } = await startRepeatedly(id, { stage, data, replies }, starts);
    servers.push(server);
    facts.push({ id, startMs });
    if (id === "ours") replies = await capture(server, works, values);
    await checkAll(server, { works, values, replies });
  }
  // In the order given, which is the order of the tables.
  const inOrder = ids.flatMap((id) => servers.filter((server) => server.id === id));
  const meter = new Meter({ processes: stage.processes, core: stage.cores?.load, folder, files }, values);
  return { servers: inOrder, facts, meter };
}

/** One real answer of each kind. */
async function capture(server: Server, works: readonly WorkId[], values: Values): Promise<Replies> {
  const replies: Record<string, Record<string, Reply>> = {};
  for (const id of works) {
    const work = workOf(id);
    if (work.credential === "spent") await spend(server, values);
    const routes: Record<string, Reply> = {};
    for (const ask of asksOf(work)) routes[routeOf(ask)] = replyOf(await askOnce(server, work, ask, values));
    replies[id] = routes;
  }
  return replies;
}

async function checkAll(
  server: Server,
  { works, values, replies }: { works: readonly WorkId[]; values: Values; replies: Replies },
): Promise<void> {
  for (const id of works.filter((work) => does(contestant(server.id), work))) {
    const work = workOf(id);
    if (work.credential === "spent") await spend(server, values);
    await checkAnswers(server, work, values);
    if (contestant(server.id).kind !== "limit") continue;
    for (const ask of asksOf(work)) {
      const model = replies[id]?.[routeOf(ask)];
      if (model) sameAnswer(server, await askOnce(server, work, ask, values), model);
    }
  }
}
