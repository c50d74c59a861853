/*
 * The measurements of a run, in order: all servers at full load, Petstore at half load, Petstore with growing tables.
 */

import { flushDisk } from "../trials/harness/machine.ts";
import { residentMb } from "../trials/harness/processes.ts";
import { median } from "../trials/harness/statistics.ts";
import { formatCount } from "../trials/harness/table.ts";
import { checkResponses, measureLoad, measureRounds, type RoundsOptions, type Run, send } from "./rounds.ts";
import { PACED, type Plan, WARM_UP_SECONDS } from "./plan.ts";
import { capture, type CapturedResponse, type CapturedResponses, routeOf } from "./replay.ts";
import { type Cell, figuresOf, type Results, type Sample } from "./targets.ts";
import {
  type CandidateServer,
  type Dataset,
  prepareDataset,
  startCandidate,
  type StartOptions,
} from "./servers.ts";
import { type CandidateId, kindsOf, type Workload, type WorkloadId, workloadOf } from "./workloads.ts";

interface Group extends Omit<RoundsOptions<CandidateServer, Sample>, "start"> {
  readonly members: readonly StartOptions[];
  /** Warms a server up at the start of a round. */
  warmUp?(server: CandidateServer): Promise<unknown>;
}

/**
 * Measures servers that run at the same time and take turns. Each round has new processes, because the location of its
 * memory makes one process up to a tenth faster than the next.
 */
async function measureGroup({ members, loads, announce, warmUp, measure }: Group) {
  const startMs = new Map(members.map(({ name }): [string, number[]] => [name, []]));
  const running: CandidateServer[] = [];
  const stop = async () => {
    for (const { child } of running.splice(0)) await child.stop();
  };
  const start = async () => {
    await stop();
    for (const member of members) {
      announce(`starting ${member.name}`);
      const server = await startCandidate(member);
      running.push(server);
      startMs.get(member.name)?.push(server.startMs);
    }
    for (const server of running) await warmUp?.(server);
    return [...running];
  };
  const measured = await measureRounds({ loads, start, announce, measure });
  const servers = running.map(({ id, name, child }) => {
    return { id, name, startMs: startMs.get(name) ?? [], residentMb: residentMb(child.pid) };
  });
  await stop();
  const cells = measured.map(({ workload, server: { id, name }, samples }) => {
    return { workload, server: id, name, samples };
  });
  return { cells, servers };
}

/** Measures all candidates at full speed, and then Petstore at half load. */
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
  const memberOf = (id: CandidateId): StartOptions => ({ id, name: id, dataset, responses, core });
  const { cells, servers } = await measureGroup({
    members: ids.map(memberOf),
    loads,
    announce,
    measure: (server, workload) => measureLoad(server, workload, { run, warmUpSeconds: WARM_UP_SECONDS }),
  });
  if (paced.length === 0) return { cells, servers, paced: [] };
  const pair = { members: PACED.servers.map(memberOf), workloads: paced, rounds: otherRounds };
  return { cells, servers, paced: await measurePaced(run, cells, pair) };
}

async function captureResponses(
  dataset: Dataset,
  workloads: readonly WorkloadId[],
  core: string | undefined,
): Promise<CapturedResponses> {
  const server = await startCandidate({ id: "ours", name: "ours", dataset, core });
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
 * Measures the latency at half of the load that saturates Petstore. Each connection pauses for a random time between
 * requests, so that together they reach that rate. The bare route gets the same rate.
 */
async function measurePaced(
  run: Run,
  cells: readonly Cell[],
  pair: { members: readonly StartOptions[]; workloads: readonly WorkloadId[]; rounds: number },
): Promise<Results["paced"]> {
  const { members, workloads, rounds } = pair;
  const rateOf = (workload: WorkloadId) => median(figuresOf(cells, workload, "ours") ?? []) / 2;
  const announce = (what: string) => run.announce(`paced · ${what}`);
  // This is the mix if it is measured, because it contains all kinds of requests.
  const broadest = workloadOf(workloads.at(-1) ?? "mix");
  const measured = await measureGroup({
    members,
    loads: workloads.map((workload) => ({ workload, servers: PACED.servers, rounds })),
    announce,
    warmUp(server) {
      announce(`warming up ${server.name}`);
      return measureLoad(server, broadest, { run, seconds: PACED.firstWarmUpSeconds });
    },
    measure: (server, workload) => measureAtRate(server, workload, { run, rate: rateOf(workload.id) }),
  });
  return measured.cells.map(({ workload, server, samples }) => {
    return { workload, server, samples, targetPerSecond: rateOf(workload) };
  });
}

/** The number of connections. Many that pause make a steady load, because wrk's timers have whole milliseconds. */
const PACED_CONNECTIONS = 256;

/** Measures at a rate. A trial measures how long a response takes; the pause is shorter by that time. */
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

/** Measures Petstore alone, with tables of several sizes. */
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
  announce("flushing the disk");
  await flushDisk();
  const names = members.map(({ name }) => name);
  const { cells, servers } = await measureGroup({
    members,
    loads: workloads.map((workload) => ({ workload, servers: names, rounds })),
    announce,
    measure: (server, workload) => measureLoad(server, workload, { run, warmUpSeconds: 1 }),
  });
  return servers.map(({ name, startMs, residentMb }, i) => {
    const own = cells.filter((cell) => cell.name === name);
    return { pets: sizes[i] ?? 0, startMs, residentMb, cells: own };
  });
}
