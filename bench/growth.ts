import { formatCount } from "../harness/table.ts";
import { ServerGroup } from "./candidate-servers.ts";
import { prepareDataset } from "./dataset.ts";
import type { Results } from "./results.ts";
import { measureLoad, measureRounds, type Run } from "./rounds.ts";
import type { WorkloadId } from "./workloads.ts";

const SIZES = [1_000, 100_000, 10_000_000] as const;
const WORKLOADS: readonly WorkloadId[] = ["list", "deep", "create-32"];
const WARM_UP_SECONDS = 1;

export function growthSteps(rounds: number): number {
  return SIZES.length * (1 + (1 + WORKLOADS.length) * rounds);
}

/** Petstore alone, with tables of three sizes: three servers run at the same time and take turns. */
export async function measureGrowth(run: Run): Promise<Results["growth"]> {
  const members = [];
  for (const pets of SIZES) {
    const name = `${formatCount(pets)} pets`;
    run.progress.step(`growth · creating ${name}`);
    members.push({ id: "ours", dataset: await prepareDataset(pets), core: run.cores?.server, name } as const);
  }
  const group = new ServerGroup(members);
  const measured = await measureRounds({
    run,
    label: "growth · ",
    workloads: WORKLOADS,
    start: () => group.start((name) => run.progress.step(`growth · starting the server with ${name}`)),
    measure: (server, workload) => measureLoad(server, workload, { run, warmUpSeconds: WARM_UP_SECONDS }),
  });
  const growth = group.facts().map(({ id, name, dataset: { pets }, startMs, residentMb }) => {
    const own = measured.filter(({ server }) => server.name === name);
    const cells = own.map(({ workload, samples }) => ({ workload, server: id, samples }));
    return { pets, startMs, residentMb, cells };
  });
  await group.stop();
  return growth;
}
