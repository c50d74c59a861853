import { median } from "../harness/statistics.ts";
import type { CandidateServer, ServerGroup } from "./candidate-servers.ts";
import type { CandidateId } from "./candidates.ts";
import { type Cell, figuresOf, type Results, type Sample } from "./results.ts";
import { measureLoad, measureRounds, type Run } from "./rounds.ts";
import { type Workload, type WorkloadId, workloadOf } from "./workloads.ts";

const WORKLOADS: readonly WorkloadId[] = ["list", "get", "mix"];
const PAIR = ["bare", "ours"] as const;
/** Many connections that pause for some milliseconds make a steady load; wrk's timers have whole milliseconds. */
const CONNECTIONS = 256;
/**
 * Until the compiler has compiled even what one request in a hundred needs. It shares the server's core, and p99 would
 * be the time that it takes.
 */
const FIRST_WARM_UP_SECONDS = 30;
const WARM_UP_SECONDS = 2;
const TRIAL_SECONDS = 1;

/** In a round. */
export function pacedSteps(workloads: readonly WorkloadId[]): number {
  return PAIR.length * (2 + WORKLOADS.filter((workload) => workloads.includes(workload)).length);
}

/**
 * Latency at half of the load that saturates Petstore. Each connection pauses for a random time between requests, so
 * that together they reach that rate. The bare route gets the same rate.
 */
export async function measurePaced(
  run: Run,
  cells: readonly Cell[],
  groupOf: (ids: readonly CandidateId[]) => ServerGroup,
): Promise<Results["paced"]> {
  const rates = new Map<WorkloadId, number>();
  for (const workload of WORKLOADS) {
    const saturating = figuresOf(cells, workload, "ours");
    if (saturating !== undefined) rates.set(workload, median(saturating) / 2);
  }
  // The mix, if it is measured: it contains all kinds of requests.
  const broadest = workloadOf([...rates.keys()].at(-1) ?? "mix");
  const group = groupOf(PAIR);
  const measured = await measureRounds({
    run,
    label: "paced · ",
    workloads: [...rates.keys()],
    async start() {
      const servers = await group.start((title) => run.progress.step(`paced · starting ${title}`));
      for (const server of servers) {
        run.progress.step(`paced · warming up · ${server.name}`);
        await measureLoad(server, broadest, { run, seconds: FIRST_WARM_UP_SECONDS });
      }
      return servers;
    },
    measure: (server, workload) =>
      measureAtRate(server, workload, { run, rate: rates.get(workload.id) ?? 0 }),
  });
  await group.stop();
  return measured.map(({ workload, server, samples }) => {
    return { workload, server: server.id, samples, targetPerSecond: rates.get(workload) ?? 0 };
  });
}

/** A trial measures how long a response takes; the pause is shorter by that time. */
async function measureAtRate(
  server: CandidateServer,
  workload: Workload,
  { run, rate }: { run: Run; rate: number },
): Promise<Sample> {
  const cycleMs = (CONNECTIONS * 1_000) / rate;
  const at = (delayMs: number) => ({ run, connections: CONNECTIONS, delayMs });
  await measureLoad(server, workload, { run, seconds: WARM_UP_SECONDS });
  const trial = await measureLoad(server, workload, { ...at(cycleMs), seconds: TRIAL_SECONDS });
  const responseMs = (CONNECTIONS * 1_000) / trial.perSecond - cycleMs;
  const delayMs = Math.min(cycleMs, Math.max(cycleMs / 2, cycleMs - responseMs));
  return await measureLoad(server, workload, at(delayMs));
}
