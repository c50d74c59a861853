import type { Meter } from "./measure.ts";
import type { Progress } from "./progress.ts";
import { type Cell, type PacedCell, throughputOf } from "./results.ts";
import type { Server } from "./servers.ts";
import { median } from "./statistics.ts";
import { takeTurns, turnName } from "./turns.ts";
import { workOf, type WorkId } from "./work.ts";

const WORKS: readonly WorkId[] = ["list", "get", "mix"];
/** Many connections that each pause some milliseconds make a steady stream; wrk's timers know no less than one. */
const CONNECTIONS = 256;

export interface PacedOptions {
  readonly meter: Meter;
  readonly servers: readonly Server[];
  /** What the contest found: half of it is the rate. */
  readonly cells: readonly Cell[];
  readonly seconds: number;
  readonly rounds: number;
  readonly progress: Progress;
}

export function pacedSteps(works: readonly WorkId[], rounds: number): number {
  return WORKS.filter((work) => works.includes(work)).length * 2 * (rounds + 1);
}

/**
 * Latency at half the load that saturates Petstore. Each connection pauses between requests for a random time, so
 * that all together ask at that rate; the bare route is asked at the very same rate.
 */
export async function measurePaced(options: PacedOptions): Promise<PacedCell[]> {
  const results: PacedCell[] = [];
  for (const work of WORKS) {
    const saturating = throughputOf(options.cells, work, "ours");
    if (saturating !== undefined) results.push(...(await pace(options, work, median(saturating) / 2)));
  }
  return results;
}

async function pace(options: PacedOptions, id: WorkId, targetPerSecond: number): Promise<PacedCell[]> {
  const { meter, servers, seconds, rounds, progress } = options;
  const cycleMs = (CONNECTIONS * 1_000) / targetPerSecond;
  const pauses = new Map<Server, number>();
  const samples = await takeTurns(servers, rounds, async (server, round) => {
    progress.step(`half load, ${workOf(id).title} · ${server.id} · ${turnName(round)}`);
    const delayMs = pauses.get(server) ?? cycleMs;
    const sample = await meter.round(server, workOf(id), { seconds, connections: CONNECTIONS, delayMs });
    // What answering takes comes off the next round's pause, within reason: a disturbed round must not upset the next.
    const answeringMs = (CONNECTIONS * 1_000) / sample.perSecond - delayMs;
    pauses.set(server, Math.min(cycleMs, Math.max(cycleMs / 2, cycleMs - answeringMs)));
    return sample;
  });
  return [...samples].map(([server, taken]) => ({
    work: id,
    server: server.id,
    samples: taken,
    targetPerSecond,
  }));
}
