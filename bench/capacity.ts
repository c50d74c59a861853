/**
 * Measures the capacity in docs/deployment.md: `npx bun bench/capacity.ts`, about a minute, needs wrk.
 *
 * One server with its own PostgreSQL and Valkey runs under full load. CPU time comes from the kernel, by process, so a
 * figure is what a request costs and does not include waiting for a core.
 */
import { SQL } from "bun";
import { PET_BODY } from "../trials/harness/api-client.ts";
import { haproxy, nginx, startLoadBalancer } from "../trials/harness/load-balancer.ts";
import { describeMachine, machineText } from "../trials/harness/machine.ts";
import { createKey, startPetstore } from "../trials/harness/petstore.ts";
import { startPostgres } from "../trials/harness/postgres.ts";
import { cpuSeconds, processTree } from "../trials/harness/processes.ts";
import { startValkey, startValkeyCluster } from "../trials/harness/valkey.ts";
import { loadWith } from "../trials/harness/wrk.ts";

const SECONDS = 3;
const CONNECTIONS = 64;
const PETS = 100_000;

interface Workload {
  readonly url: string;
  readonly key: string;
  readonly body?: string;
}

const load = async (workload: Workload, seconds: number) =>
  (await loadWith({ ...workload, connections: CONNECTIONS, seconds })).requests;

const cpuOf = (pids: readonly number[]) =>
  pids.flatMap(processTree).reduce((sum, pid) => sum + cpuSeconds(pid), 0);

/** CPU time of each group of processes per request, in microseconds. */
async function measure(workload: Workload, groups: Readonly<Record<string, readonly number[]>>) {
  await load(workload, 1);
  const before = Object.values(groups).map(cpuOf);
  const requests = await load(workload, SECONDS);
  const costs = Object.entries(groups).map(([name, pids], i) => {
    const micros = ((cpuOf(pids) - (before[i] ?? 0)) / requests) * 1e6;
    return [`${name} µs`, Math.round(micros * 10) / 10];
  });
  return { "requests/s": Math.round(requests / SECONDS), ...Object.fromEntries(costs) };
}

const [postgres, valkey] = [await startPostgres({ durable: true }), await startValkey()];
const storage = ["--database-url", postgres.url, "--limits-url", valkey.url];
const { key } = await createKey(storage);
const sql = new SQL(postgres.url, { max: 1 });
await sql.unsafe(`INSERT INTO production.pets (name, category_id, status)
  SELECT 'Rex ' || n, n % 50, (ARRAY['available', 'pending', 'sold'])[1 + n % 3]
  FROM generate_series(1, ${PETS}) AS n`);
await sql.unsafe("VACUUM ANALYZE production.pets");

// A long timeout: this machine is so busy that a late response does not mean a failure.
const patient = ["--limits-timeout", "1s", "--port", "0", "--trust-proxy", "127.0.0.1"];
const server = await startPetstore([...storage, ...patient]);
const groups = { server: [server.pid], postgres: [postgres.pid], valkey: [valkey.pid] };
const costs: Record<string, Record<string, number>> = {};
costs["list, first page of 20"] = await measure({ url: `${server.url}/pets`, key }, groups);
costs.get = await measure({ url: `${server.url}/pets/4711`, key }, groups);
costs.create = await measure({ url: `${server.url}/pets`, key, body: PET_BODY }, groups);

const port = Number(new URL(server.url).port);
for (const kind of [nginx, haproxy]) {
  const balancer = await startLoadBalancer(kind, [port, port, port]);
  const url = `http://127.0.0.1:${balancer.port}/v1/pets/4711`;
  costs[`get through ${kind.program.name}`] = await measure(
    { url, key },
    { ...groups, balancer: [balancer.pid] },
  );
  await balancer.stop();
}
await server.stop();

const cluster = await startValkeyCluster();
const nodes = ["--limits-url", cluster.nodes.map(({ url }) => url).join(",")];
const clustered = await startPetstore(["--database-url", postgres.url, ...nodes, ...patient]);
costs["get, Valkey as a cluster"] = await measure(
  { url: `${clustered.url}/pets/4711`, key },
  { ...groups, server: [clustered.pid], valkey: cluster.nodes.map(({ pid }) => pid) },
);
await clustered.stop();

const machine = describeMachine();
process.stdout.write(
  `${machineText(machine)}, Bun ${Bun.version}; load average at the end ${machine.load}\n${Bun.inspect.table(costs)}`,
);
process.exit(0);
