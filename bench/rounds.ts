import { cpuSeconds } from "../harness/processes.ts";
import type { Progress } from "../harness/progress.ts";
import { runWrk } from "../harness/wrk.ts";
import type { CandidateServer } from "./candidate-servers.ts";
import { checkResponses, checkRound, checkRows, highestPetId } from "./checks.ts";
import type { Sample } from "./results.ts";
import { kindsOf, requestOf, type Workload, type WorkloadId, workloadOf } from "./workloads.ts";

export interface Run {
  readonly cores: { readonly server: string; readonly load: string } | undefined;
  readonly seconds: number;
  readonly rounds: number;
  readonly progress: Progress;
}

/** Each round begins with another server, so that the order favours none. */
export function rotate<T>(servers: readonly T[], round: number): T[] {
  const start = servers.length === 0 ? 0 : round % servers.length;
  return [...servers.slice(start), ...servers.slice(0, start)];
}

export interface RoundsOptions<Server> {
  readonly run: Pick<Run, "rounds" | "progress">;
  readonly label: string;
  readonly workloads: readonly WorkloadId[];
  /** New processes for every round: where its memory lies makes a process up to a tenth faster than the next. */
  start(): Promise<readonly Server[]>;
  supports?(server: Server, workload: WorkloadId): boolean;
  measure(server: Server, workload: Workload): Promise<Sample>;
}

/** All samples by workload and server; the servers are those of the last round. */
export async function measureRounds<Server extends { readonly name: string }>(
  options: RoundsOptions<Server>,
): Promise<{ workload: WorkloadId; server: Server; samples: readonly Sample[] }[]> {
  const { run, label, workloads, start, supports = () => true, measure } = options;
  const samples = new Map<string, Sample[]>();
  const samplesOf = (workload: WorkloadId, { name }: Server) => samples.get(`${workload} ${name}`) ?? [];
  let servers: readonly Server[] = [];
  for (let round = 1; round <= run.rounds; round++) {
    servers = await start();
    for (const workload of workloads.map(workloadOf)) {
      const able = servers.filter((server) => supports(server, workload.id));
      for (const server of rotate(able, round)) {
        run.progress.step(`${label}round ${round} of ${run.rounds} · ${workload.title} · ${server.name}`);
        const sample = await measure(server, workload);
        samples.set(`${workload.id} ${server.name}`, [...samplesOf(workload.id, server), sample]);
      }
    }
  }
  return workloads.flatMap((workload) =>
    servers
      .filter((server) => supports(server, workload))
      .map((server) => ({ workload, server, samples: samplesOf(workload, server) })),
  );
}

export interface LoadOptions {
  readonly run: Run;
  readonly warmUpSeconds?: number;
  readonly seconds?: number;
  readonly connections?: number;
  readonly delayMs?: number;
}

/** How many values each server has been sent, so that rounds do not repeat them. */
const offsets = new Map<string, number>();

export async function measureLoad(
  server: CandidateServer,
  workload: Workload,
  { run, warmUpSeconds, seconds = run.seconds, connections = workload.connections, delayMs = 0 }: LoadOptions,
): Promise<Sample> {
  if (warmUpSeconds !== undefined) await measureLoad(server, workload, { run, seconds: warmUpSeconds });
  const { id, name, child } = server;
  const expectedBytes = await checkResponses(server, workload);
  const offset = offsets.get(`${name} ${workload.id}`) ?? 0;
  const parts = kindsOf(workload).map((kind) => requestOf(kind, workload, id, server.dataset));
  const database = workload.mix.create === undefined ? undefined : server.database;
  const rowsBefore = database === undefined ? 0 : highestPetId(database);
  const cpuBefore = cpuSeconds(child.pid);
  const port = server.portFor(workload.id);
  const figures = await runWrk({ port, connections, seconds, parts, offset, delayMs, core: run.cores?.load });
  const cpu = cpuSeconds(child.pid) - cpuBefore;

  const { requests } = figures;
  checkRound(id, workload, figures, expectedBytes);
  if (database !== undefined)
    checkRows(id, workload, { rows: highestPetId(database) - rowsBefore, requests, connections });
  offsets.set(`${name} ${workload.id}`, offset + requests + connections);
  return {
    perSecond: requests / (figures.micros / 1e6),
    p50Ms: figures.p50 / 1_000,
    p99Ms: figures.p99 / 1_000,
    cpuMicros: (cpu * 1e6) / requests,
    loadCpu: figures.loadCpu,
  };
}
