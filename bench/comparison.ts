import { ServerGroup, startCandidate } from "./candidate-servers.ts";
import { type CandidateId, supports } from "./candidates.ts";
import { checkResponses, send } from "./checks.ts";
import { type Dataset, prepareDataset } from "./dataset.ts";
import { measurePaced, pacedSteps } from "./paced.ts";
import { capture, type CapturedResponse, type CapturedResponses, routeOf } from "./replay/responses.ts";
import type { Results } from "./results.ts";
import { measureLoad, measureRounds, type Run } from "./rounds.ts";
import { kindsOf, type WorkloadId, workloadOf } from "./workloads.ts";

const WARM_UP_SECONDS = 2;

export interface ComparisonOptions {
  readonly ids: readonly CandidateId[];
  readonly workloads: readonly WorkloadId[];
  readonly pets: number;
  /** Whether the latency at half load is measured, too. */
  readonly isPaced: boolean;
}

export function comparisonSteps({ ids, workloads, isPaced }: ComparisonOptions, rounds: number): number {
  const pairs = workloads.flatMap((workload) => ids.filter((id) => supports(id, workload)));
  return 1 + rounds * (ids.length + pairs.length + (isPaced ? pacedSteps(workloads) : 0));
}

/** All candidates, with each workload that they support, as fast as they respond; then Petstore at half load. */
export async function compare(
  run: Run,
  { ids, workloads, pets, isPaced }: ComparisonOptions,
): Promise<Pick<Results, "cells" | "servers" | "paced">> {
  run.progress.step("creating the pets and capturing Petstore's responses");
  const dataset = await prepareDataset(pets);
  const core = run.cores?.server;
  const responses = await captureResponses(dataset, workloads, core);
  const groupOf = (members: readonly CandidateId[]) =>
    new ServerGroup(members.map((id) => ({ id, dataset, responses, core })));

  const group = groupOf(ids);
  const measured = await measureRounds({
    run,
    label: "",
    workloads,
    start: () => group.start((title) => run.progress.step(`starting ${title}`)),
    supports: ({ id }, workload) => supports(id, workload),
    measure: (server, workload) => measureLoad(server, workload, { run, warmUpSeconds: WARM_UP_SECONDS }),
  });
  const cells = measured.map(({ workload, server, samples }) => ({ workload, server: server.id, samples }));
  const servers = group.facts().map(({ id, startMs, residentMb }) => ({ id, startMs, residentMb }));
  await group.stop();
  return { cells, servers, paced: isPaced ? await measurePaced(run, cells, groupOf) : [] };
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
