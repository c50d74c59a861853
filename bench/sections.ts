/** What a run measures, in this order: all servers at full load, Petstore at half load, and Petstore as it grows. */
import { median } from "../trials/harness/statistics.ts";
import { formatCount } from "../trials/harness/table.ts";
import { checkResponses, measureLoad, measureRounds, type Run, send } from "./rounds.ts";
import { PACED, type Plan, WARM_UP_SECONDS } from "./plan.ts";
import { capture, type CapturedResponse, type CapturedResponses, routeOf } from "./replay.ts";
import { type Cell, figuresOf, type Results, type Sample } from "./targets.ts";
import { type Dataset, prepareDataset, type ServerGroup, serverGroup, startCandidate } from "./servers.ts";
import type { CandidateServer } from "./servers.ts";
import { type CandidateId, kindsOf, type Workload, type WorkloadId, workloadOf } from "./workloads.ts";

/** All candidates, as fast as they respond; then Petstore at half load. */
export async function compare(
  run: Run,
  { ids, loads, paced, otherRounds }: Plan,
  pets: number,
): Promise<Pick<Results, "cells" | "servers" | "paced">> {
  const { announce } = run;
  announce("creating the pets and capturing Petstore's responses");
  const dataset = await prepareDataset(pets);
  const core = run.cores?.server;
  const workloads = loads.map(({ workload }) => workload);
  const responses = await captureResponses(dataset, workloads, core);
  const groupOf = (members: readonly CandidateId[]) =>
    serverGroup(members.map((id) => ({ id, dataset, responses, core })));

  const group = groupOf(ids);
  const measured = await measureRounds({
    loads,
    start: () => group.start(announce),
    announce,
    measure: (server, workload) => measureLoad(server, workload, { run, warmUpSeconds: WARM_UP_SECONDS }),
  });
  const cells = measured.map(({ workload, server, samples }) => ({ workload, server: server.id, samples }));
  const servers = group.facts().map(({ id, startMs, residentMb }) => ({ id, startMs, residentMb }));
  await group.stop();
  const pair = { group: groupOf(PACED.servers), workloads: paced, rounds: otherRounds };
  return { cells, servers, paced: paced.length === 0 ? [] : await measurePaced(run, cells, pair) };
}

async function captureResponses(
  dataset: Dataset,
  workloads: readonly WorkloadId[],
  core: string | undefined,
): Promise<CapturedResponses> {
  const server = await startCandidate({ id: "ours", dataset, core });
  const responses: Record<string, Record<string, CapturedResponse>> = {};
  for (const workload of workloads.map(workloadOf)) {
    await checkResponses(server, workload);
    const routes: Record<string, CapturedResponse> = {};
    for (const kind of kindsOf(workload)) routes[routeOf(kind)] = capture(await send(server, workload, kind));
    responses[workload.id] = routes;
  }
  await server.child.stop();
  return responses;
}

/**
 * Latency at half of the load that saturates Petstore. Each connection pauses for a random time between requests, so
 * that together they reach that rate. The bare route gets the same rate.
 */
async function measurePaced(
  run: Run,
  cells: readonly Cell[],
  { group, workloads, rounds }: { group: ServerGroup; workloads: readonly WorkloadId[]; rounds: number },
): Promise<Results["paced"]> {
  const rateOf = (workload: WorkloadId) => median(figuresOf(cells, workload, "ours") ?? []) / 2;
  const announce = (what: string) => run.announce(`paced · ${what}`);
  // The mix, if it is measured: it contains all kinds of requests.
  const broadest = workloadOf(workloads.at(-1) ?? "mix");
  const measured = await measureRounds({
    loads: workloads.map((workload) => ({ workload, servers: PACED.servers, rounds })),
    announce,
    async start() {
      const servers = await group.start(announce);
      for (const server of servers) {
        announce(`warming up ${server.name}`);
        await measureLoad(server, broadest, { run, seconds: PACED.firstWarmUpSeconds });
      }
      return servers;
    },
    measure: (server, workload) => measureAtRate(server, workload, { run, rate: rateOf(workload.id) }),
  });
  await group.stop();
  return measured.map(({ workload, server, samples }) => {
    return { workload, server: server.id, samples, targetPerSecond: rateOf(workload) };
  });
}

/** Many connections that pause for some milliseconds make a steady load; wrk's timers have whole milliseconds. */
const PACED_CONNECTIONS = 256;

/** A trial measures how long a response takes; the pause is shorter by that time. */
async function measureAtRate(
  server: CandidateServer,
  workload: Workload,
  { run, rate }: { run: Run; rate: number },
): Promise<Sample> {
  const cycleMs = (PACED_CONNECTIONS * 1_000) / rate;
  const at = (delayMs: number) => ({ run, connections: PACED_CONNECTIONS, delayMs });
  await measureLoad(server, workload, { run, seconds: WARM_UP_SECONDS });
  const trial = await measureLoad(server, workload, { ...at(cycleMs), seconds: PACED.trialSeconds });
  const responseMs = (PACED_CONNECTIONS * 1_000) / trial.perSecond - cycleMs;
  const delayMs = Math.min(cycleMs, Math.max(cycleMs / 2, cycleMs - responseMs));
  return await measureLoad(server, workload, at(delayMs));
}

/** Petstore alone, with tables of several sizes: the servers run at the same time and take turns. */
export async function measureGrowth(
  run: Run,
  { growth: { sizes, workloads }, otherRounds: rounds }: Plan,
): Promise<Results["growth"]> {
  const announce = (what: string) => run.announce(`growth · ${what}`);
  const members = [];
  for (const pets of sizes) {
    const name = `${formatCount(pets)} pets`;
    announce(`creating ${name}`);
    members.push({ id: "ours", dataset: await prepareDataset(pets), core: run.cores?.server, name } as const);
  }
  const group = serverGroup(members);
  const servers = members.map(({ name }) => name);
  const measured = await measureRounds({
    loads: workloads.map((workload) => ({ workload, servers, rounds })),
    start: () => group.start(announce),
    announce,
    measure: (server, workload) => measureLoad(server, workload, { run, warmUpSeconds: 1 }),
  });
  const grown = group.facts().map(({ id, name, dataset: { pets }, startMs, residentMb }) => {
    const own = measured.filter(({ server }) => server.name === name);
    const cells = own.map(({ workload, samples }) => ({ workload, server: id, samples }));
    return { pets, startMs, residentMb, cells };
  });
  await group.stop();
  return grown;
}
