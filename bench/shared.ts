/*
 * Measures PostgreSQL with several servers, compared with one server with the embedded stores. Unlike in the
 * other sections, all processes share all cores. CPU time comes from the kernel and excludes waiting for a core.
 */

import { SQL } from "bun";
import { Fleet, startStores } from "../trials/harness/fleet.ts";
import { flushDisk, pinThisProcessTo } from "../trials/harness/machine.ts";
import { runProgram } from "../trials/harness/child.ts";
import { PETSTORE, startPetstore, UNLIMITED } from "../trials/harness/petstore.ts";
import { cpuSecondsOfTrees } from "../trials/harness/processes.ts";
import { type RequestPart, runWrk, type WrkFigures } from "../trials/harness/wrk.ts";
import { type Plan, SHARED, sharedName, sharedWorkload } from "./plan.ts";
import { measureRounds, type Run, WrongResponse } from "./rounds.ts";
import { prepareDataset } from "./servers.ts";
import type { SharedCell, SharedSample } from "./targets.ts";
import { kindsOf, requestOf, type RequestSource, type Workload } from "./workloads.ts";

export async function measureShared(
  run: Run,
  { sharedRounds: rounds }: Plan,
  pets: number,
): Promise<SharedCell[]> {
  if (rounds === 0) return [];
  const announce = (what: string) => run.announce(`shared · ${what}`);
  announce("starting PostgreSQL and servers");
  if (run.cores) pinThisProcessTo(`${run.cores.server},${run.cores.load}`);
  const { setups, stop } = await startSetups(pets);
  await flushDisk();
  for (const setup of setups.filter(({ isWarmedUp }) => isWarmedUp))
    await loadSetup(setup, sharedWorkload("mix"), SHARED.firstWarmUpSeconds);
  const cells = await measureRounds({
    loads: SHARED.workloads.flatMap((workload) => [
      { workload, servers: SHARED.setups.filter(({ servers }) => servers <= 1).map(sharedName), rounds },
      { workload, servers: SHARED.setups.filter(({ servers }) => servers > 1).map(sharedName), rounds: 1 },
    ]),
    start: async () => setups,
    announce,
    measure: (setup, { id }) => measureSetup(setup, sharedWorkload(id), run.seconds),
  });
  await stop();
  return cells.map(({ workload, server: { servers }, samples }) => ({
    workload,
    servers,
    samples,
  }));
}

export const PROXY_FLAGS = ["--trust-proxy", "127.0.0.1"];

async function startSetups(pets: number) {
  const { directory, keys, values } = await prepareDataset(pets);
  const embedded = await startPetstore(["--data", directory, "--port", "0", "--trust-proxy", "127.0.0.1"]);
  const { postgres, storage, key } = await startFilledStores(pets);
  const size = Math.max(...SHARED.setups.map(({ servers }) => servers));
  const fleet = await Fleet.start({ size, storage, flags: PROXY_FLAGS });
  const setups = SHARED.setups.map((setup) => {
    const { servers } = setup;
    const chosen = servers === 0 ? [embedded] : fleet.servers.slice(0, servers);
    const databases = servers === 0 ? [] : [[postgres.pid]];
    return {
      ...setup,
      name: sharedName(setup),
      ports: chosen.map(({ url }) => Number(new URL(url).port)),
      pids: [chosen.map(({ pid }) => pid), ...databases],
      source: { keys: servers === 0 ? keys : { ...keys, unlimited: key }, values },
    };
  });
  const stop = async () => {
    for (const server of [embedded, fleet, postgres]) await server.stop();
  };
  return { setups, stop };
}

/** Starts stores with pets, and creates a key for a server that uses them. `program` can be another release. */
export async function startFilledStores(pets: number, program: readonly string[] = PETSTORE) {
  const stores = await startStores();
  const key = await makeKey(program, stores.storage);
  await using sql = new SQL(stores.postgres.url, { max: 1 });
  await sql.unsafe(`INSERT INTO production.pets (name, category_id, status)
    SELECT 'Rex', n % 1000, (ARRAY['available', 'pending', 'sold', NULL])[1 + n % 4]
    FROM generate_series(1, ${pets}) AS n`);
  await sql.unsafe("VACUUM ANALYZE production.pets");
  return { ...stores, key };
}

/** Makes the database and a key without limits. Release 1.3.0 makes the tables with the first key. */
export async function makeKey(program: readonly string[], storage: readonly string[]): Promise<string> {
  await runProgram([...program, "migrate", ...storage]);
  return addKey(program, storage);
}

export async function addKey(program: readonly string[], storage: readonly string[]): Promise<string> {
  const create = ["keys", "create", "--name", "bench", "--plan", "enterprise", ...UNLIMITED, "--json"];
  const { code, out, err } = await runProgram([...program, ...create, ...storage]);
  if (code !== 0) throw new Error(err);
  return JSON.parse(out).key;
}

/** The target of the load, and the groups of processes whose CPU time is measured. */
export interface Setup {
  readonly ports: readonly number[];
  readonly pids: readonly (readonly number[])[];
  readonly source: RequestSource;
  /** The keys of the requests, if there are several. */
  readonly keys?: readonly string[];
}

/** Measures a setup after a warm-up. The processes are those of servers, PostgreSQL and a load balancer. */
export async function measureSetup(setup: Setup, workload: Workload, seconds: number): Promise<SharedSample> {
  await loadSetup(setup, workload, SHARED.warmUpSeconds);
  const before = setup.pids.map(cpuSecondsOfTrees);
  const { requests, perSecond } = await loadSetup(setup, workload, seconds);
  const [server = 0, postgres = 0, balancer = 0] = setup.pids.map(
    (group, i) => ((cpuSecondsOfTrees(group) - (before[i] ?? 0)) * 1e6) / requests,
  );
  return { perSecond, server, postgres, balancer };
}

async function loadSetup({ ports, source, keys }: Setup, workload: Workload, seconds: number) {
  const parts = partsOf(workload, source, keys);
  const connections = workload.connections / ports.length;
  const loads = await Promise.all(ports.map((port) => runWrk({ port, connections, seconds, parts })));
  const sum = (figure: (load: WrkFigures) => number) =>
    loads.reduce((total, load) => total + figure(load), 0);
  const [requests, faults] = [sum((load) => load.requests), sum(({ rejected, failed }) => rejected + failed)];
  if (faults > 0) throw new WrongResponse("ours", workload, `${faults} of ${requests} failed`);
  return { requests, perSecond: sum((load) => load.requests / (load.micros / 1e6)) };
}

/** The requests of a workload, with each of the keys in turn. */
export function partsOf(
  workload: Workload,
  source: RequestSource,
  keys: readonly string[] = [source.keys.unlimited],
): readonly RequestPart[] {
  return keys.flatMap((unlimited) =>
    kindsOf(workload).map((kind) =>
      requestOf(kind, workload, "ours", { ...source, keys: { ...source.keys, unlimited } }),
    ),
  );
}
