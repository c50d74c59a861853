import type { Arena } from "./arena.ts";
import type { Sample } from "./measure.ts";
import { type Cell, type PacedCell, throughputOf } from "./results.ts";
import type { Progress } from "./progress.ts";
import type { Server } from "./servers.ts";
import { median } from "./statistics.ts";
import { inTurn, Scores } from "./turns.ts";
import { workOf, type WorkId } from "./work.ts";

const WORKS: readonly WorkId[] = ["list", "get", "mix"];
const PAIR = ["bare", "ours"] as const;
/** Many connections that each pause some milliseconds make a steady stream; wrk's timers know no less than one. */
const CONNECTIONS = 256;
/**
 * Long enough for the compiler to be done, also with what one request in a hundred needs: it shares the server's core,
 * and a p99 would be the length of its work.
 */
const FIRST_WARM_UP_SECONDS = 30;
const WARM_UP_SECONDS = 2;
const TRIAL_SECONDS = 1;

export interface PacedOptions {
  readonly arena: Arena;
  /** What the contest found: half of it is the rate. */
  readonly cells: readonly Cell[];
  readonly seconds: number;
  readonly rounds: number;
  readonly progress: Progress;
}

export function pacedSteps(works: readonly WorkId[], rounds: number): number {
  return PAIR.length * (2 + WORKS.filter((work) => works.includes(work)).length) * rounds;
}

/**
 * Latency at half the load that saturates Petstore. Each connection pauses between requests for a random time, so
 * that all together ask at that rate; the bare route is asked at the very same rate.
 */
export async function measurePaced(options: PacedOptions): Promise<PacedCell[]> {
  const { arena, seconds, rounds, progress } = options;
  const rates = new Map<WorkId, number>();
  for (const work of WORKS) {
    const saturating = throughputOf(options.cells, work, "ours");
    if (saturating !== undefined) rates.set(work, median(saturating) / 2);
  }
  const scores = new Scores([...rates.keys()], () => PAIR);
  for (let round = 1; round <= rounds; round++) {
    const servers = await arena.start(PAIR);
    for (const server of servers) {
      progress.step(`half load · round ${round} of ${rounds} · warming up · ${server.id}`);
      await arena.meter.round(server, workOf(broadestOf(rates)), { seconds: FIRST_WARM_UP_SECONDS });
    }
    for (const [work, rate] of rates) {
      for (const server of inTurn(servers, round)) {
        progress.step(`half load · round ${round} of ${rounds} · ${workOf(work).title} · ${server.id}`);
        scores.add(work, server.id, await pace(arena, server, { work, rate, seconds }));
      }
    }
  }
  return scores.cells.map(({ work, server, samples }) => ({
    work,
    server,
    samples,
    targetPerSecond: rates.get(work) ?? 0,
  }));
}

/** The mix has everything in it. */
function broadestOf(rates: ReadonlyMap<WorkId, number>): WorkId {
  return [...rates.keys()].at(-1) ?? "mix";
}

/** How long answering takes is found out first, and comes off the pause. */
async function pace(
  { meter }: Arena,
  server: Server,
  { work, rate, seconds }: { work: WorkId; rate: number; seconds: number },
): Promise<Sample> {
  const cycleMs = (CONNECTIONS * 1_000) / rate;
  const ask = (delayMs: number, length: number) =>
    meter.round(server, workOf(work), { seconds: length, connections: CONNECTIONS, delayMs });
  await meter.round(server, workOf(work), { seconds: WARM_UP_SECONDS });
  const trial = await ask(cycleMs, TRIAL_SECONDS);
  const answeringMs = (CONNECTIONS * 1_000) / trial.perSecond - cycleMs;
  return ask(Math.min(cycleMs, Math.max(cycleMs / 2, cycleMs - answeringMs)), seconds);
}
