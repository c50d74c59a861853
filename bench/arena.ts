import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { contestant, type ContestantId, does } from "./contestants.ts";
import { type Meter, openMeter } from "./measure.ts";
import { residentMb } from "./proc.ts";
import type { Progress } from "./progress.ts";
import { type Replies, type Reply, replyOf, routeOf } from "./replies.ts";
import type { ServerFacts } from "./results.ts";
import { askOnce, checkAnswers, sameAnswer } from "./sanity.ts";
import { type Server, startServer } from "./servers.ts";
import { spend } from "./spend.ts";
import { prepareData, type Setting, type Stage } from "./stage.ts";
import { type Values, valuesFor } from "./values.ts";
import { asksOf, workOf, type WorkId } from "./work.ts";

export interface ArenaOptions {
  readonly stage: Stage;
  readonly ids: readonly ContestantId[];
  readonly works: readonly WorkId[];
  readonly animals: number;
  readonly progress: Progress;
}

/**
 * Where the servers of the contest run. They can be started anew at any time, and are for every round: by where its
 * memory happens to lie, one process is up to a tenth faster than the next of the same program.
 */
export class Arena {
  readonly ids: readonly ContestantId[];
  readonly meter: Meter;
  readonly #options: ArenaOptions;
  readonly #setting: Setting;
  readonly #startMs = new Map<ContestantId, number[]>();
  #servers: Server[] = [];

  private constructor(options: ArenaOptions, setting: Setting, meter: Meter) {
    this.ids = options.ids;
    this.meter = meter;
    this.#options = options;
    this.#setting = setting;
  }

  /** Petstore is asked first, because the limits repeat what it answers; then everyone is checked. */
  static async open(options: ArenaOptions): Promise<Arena> {
    const { stage, works, animals, progress } = options;
    progress.step("filling the tables and checking all answers");
    const data = await prepareData(stage, animals);
    const values = valuesFor(animals);
    const folder = join(stage.folder, "load");
    mkdirSync(folder);
    const meter = openMeter(folder, stage, values);

    const ours = await startServer("ours", { stage, data, replies: {} });
    const replies = await capture(ours, works, values);
    await stage.processes.stop(ours);
    const arena = new Arena(options, { stage, data, replies }, meter);
    for (const server of await arena.#startAll(options.ids))
      await checkAll(server, { works, values, replies });
    return arena;
  }

  /** These servers, in new processes, and no others. */
  async start(ids: readonly ContestantId[]): Promise<readonly Server[]> {
    const { progress } = this.#options;
    const servers = await this.#startAll(ids, (id) => progress.step(`starting ${contestant(id).title}`));
    for (const { id, startMs } of servers) this.#startMs.set(id, [...(this.#startMs.get(id) ?? []), startMs]);
    return servers;
  }

  async #startAll(
    ids: readonly ContestantId[],
    announce?: (id: ContestantId) => void,
  ): Promise<readonly Server[]> {
    await this.stop();
    for (const id of ids) {
      announce?.(id);
      this.#servers.push(await startServer(id, this.#setting));
    }
    return this.#servers;
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) await this.#setting.stage.processes.stop(server);
    this.#servers = [];
  }

  /** Of the servers that run now. */
  facts(): ServerFacts[] {
    return this.#servers.map(({ id, pid }) => ({
      id,
      startMs: this.#startMs.get(id) ?? [],
      residentMb: residentMb(pid),
    }));
  }
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
