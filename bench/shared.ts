/**
 * PostgreSQL and Valkey with several servers, against one server with the embedded stores. Unlike in the other
 * sections all processes share all cores. CPU time comes from the kernel and does not include waiting for a core.
 */
import { SQL } from "bun";
import { pinThisProcessTo } from "../trials/harness/machine.ts";
import { createKey, type PetstoreServer, startPetstore } from "../trials/harness/petstore.ts";
import { startPostgres } from "../trials/harness/postgres.ts";
import { cpuSecondsOfTrees } from "../trials/harness/processes.ts";
import { startValkey } from "../trials/harness/valkey.ts";
import { runWrk, type WrkFigures } from "../trials/harness/wrk.ts";
import { type Plan, SHARED, sharedWorkload } from "./plan.ts";
import { rotate, type Run, WrongResponse } from "./rounds.ts";
import { prepareDataset } from "./servers.ts";
import type { SharedCell, SharedSample } from "./targets.ts";
import { kindsOf, requestOf, type RequestSource, type Workload } from "./workloads.ts";

export async function measureShared(run: Run, { sharedRounds: rounds }: Plan, pets: number) {
  if (rounds === 0) return [];
  const step = (what: string) => run.announce(`shared · ${what}`);
  step("starting PostgreSQL, Valkey and servers");
  if (run.cores) pinThisProcessTo(`${run.cores.server},${run.cores.load}`);
  const { setups, stop } = await startSetups(pets);
  const cells: (SharedCell & { readonly samples: SharedSample[] })[] = SHARED.workloads.flatMap((workload) =>
    SHARED.servers.map((servers) => ({ workload, servers, samples: [] })),
  );
  for (const setup of setups.filter(({ servers }) => SHARED.warmedUp.includes(servers)))
    await loadSetup(setup, sharedWorkload("mix"), SHARED.firstWarmUpSeconds);
  for (let round = 1; round <= rounds; round++) {
    for (const id of SHARED.workloads) {
      const workload = sharedWorkload(id);
      for (const setup of rotate(setups, round)) {
        if (round > 1 && setup.servers > 1) continue;
        step(`round ${round} of ${rounds} · ${workload.title} · ${setup.servers || "embedded"}`);
        const sample = await measureSetup(setup, workload, run.seconds);
        cells.find((cell) => cell.workload === id && cell.servers === setup.servers)?.samples.push(sample);
      }
    }
  }
  await stop();
  return cells;
}

const FLAGS = ["--port", "0", "--trust-proxy", "127.0.0.1"];
/** A long timeout: the cores are so busy that a late response does not mean a failure. */
export const PATIENT_FLAGS = [...FLAGS, "--limits-timeout", "1s"];

async function startSetups(pets: number) {
  const { folder, keys, values } = await prepareDataset(pets);
  const embedded = await startPetstore(["--data", folder, ...FLAGS]);
  const { postgres, valkey, storage, key } = await startStores(pets);
  const fleet: PetstoreServer[] = [];
  while (fleet.length < Math.max(...SHARED.servers))
    fleet.push(await startPetstore([...storage, ...PATIENT_FLAGS]));
  const setups = SHARED.servers.map((servers) => {
    const chosen = servers === 0 ? [embedded] : fleet.slice(0, servers);
    const databases = servers === 0 ? [] : [[postgres.pid], [valkey.pid]];
    return {
      /** 0 stands for the server with the embedded stores. */
      servers,
      ports: chosen.map(({ url }) => Number(new URL(url).port)),
      pids: [chosen.map(({ pid }) => pid), ...databases],
      source: { keys: servers === 0 ? keys : { ...keys, unlimited: key }, values },
    };
  });
  const stop = async () => {
    for (const server of [embedded, ...fleet, postgres, valkey]) await server.stop();
  };
  return { setups, stop };
}

/** With pets, and a key for a server that uses them. */
export async function startStores(pets: number) {
  const [postgres, valkey] = [await startPostgres({ durable: true }), await startValkey()];
  const storage = ["--database-url", postgres.url, "--limits-url", valkey.url];
  const { key } = await createKey(storage);
  await using sql = new SQL(postgres.url, { max: 1 });
  await sql.unsafe(`INSERT INTO production.pets (name, category_id, status)
    SELECT 'Rex', n % 1000, (ARRAY['available', 'pending', 'sold', NULL])[1 + n % 4]
    FROM generate_series(1, ${pets}) AS n`);
  await sql.unsafe("VACUUM ANALYZE production.pets");
  return { postgres, valkey, storage, key };
}

/** What is loaded, and the groups of processes whose CPU time is measured. */
export interface Setup {
  readonly ports: readonly number[];
  readonly pids: readonly (readonly number[])[];
  readonly source: RequestSource;
}

/** After a warm-up. The processes are those of servers, PostgreSQL, Valkey and a load balancer. */
export async function measureSetup(setup: Setup, workload: Workload, seconds: number): Promise<SharedSample> {
  await loadSetup(setup, workload, SHARED.warmUpSeconds);
  const before = setup.pids.map(cpuSecondsOfTrees);
  const { requests, perSecond } = await loadSetup(setup, workload, seconds);
  const [server = 0, postgres = 0, valkey = 0, balancer = 0] = setup.pids.map(
    (group, i) => ((cpuSecondsOfTrees(group) - (before[i] ?? 0)) * 1e6) / requests,
  );
  return { perSecond, server, postgres, valkey, balancer };
}

async function loadSetup({ ports, source }: Setup, workload: Workload, seconds: number) {
  const parts = kindsOf(workload).map((kind) => requestOf(kind, workload, "ours", source));
  const connections = workload.connections / ports.length;
  const loads = await Promise.all(ports.map((port) => runWrk({ port, connections, seconds, parts })));
  const sum = (figure: (load: WrkFigures) => number) =>
    loads.reduce((total, load) => total + figure(load), 0);
  const [requests, faults] = [sum((load) => load.requests), sum(({ rejected, failed }) => rejected + failed)];
  if (faults > 0) throw new WrongResponse("ours", workload, `${faults} of ${requests} failed`);
  return { requests, perSecond: sum((load) => load.requests / (load.micros / 1e6)) };
}
