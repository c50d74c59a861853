/**
 * `npm run bench:engines`, about a minute, measures the capacity in docs/deployment.md: one server with its own
 * PostgreSQL and Valkey under full load, and gets through balancers and with a Valkey cluster. CPU time comes from the
 * kernel, by process, so a figure is what a request costs and does not include waiting for a core.
 */
import { PET_BODY } from "../trials/harness/api-client.ts";
import { runCommand } from "../trials/harness/command-line.ts";
import { haproxy, nginx, startLoadBalancer } from "../trials/harness/load-balancer.ts";
import { describeMachine, machineText } from "../trials/harness/machine.ts";
import { startPetstore } from "../trials/harness/petstore.ts";
import { cpuSecondsOfTrees } from "../trials/harness/processes.ts";
import { startValkeyCluster } from "../trials/harness/valkey.ts";
import { loadWith, requireWrk } from "../trials/harness/wrk.ts";
import { startStores } from "./shared.ts";

const PETS = 100_000;
const SECONDS = 3;
const CONNECTIONS = 64;

interface Workload {
  readonly url: string;
  readonly key: string;
  readonly body?: string;
}

const load = (workload: Workload, seconds = SECONDS) =>
  loadWith({ ...workload, connections: CONNECTIONS, seconds });

type Costs = Readonly<Record<string, number>>;

/** What a million requests a second need, in the mix of docs/deployment.md, with as much to spare. */
function estimate(costs: Readonly<Record<string, Costs>>): string {
  const cost = (row: string, name: string) => costs[row]?.[`${name} µs`] ?? 0;
  const mix = (name: string) =>
    0.9 * cost("list", name) + 0.09 * cost("get", name) + 0.01 * cost("create", name);
  const inCluster = (name: string) => mix(name) + cost("cluster", name) - cost("get", name);
  const needed = {
    servers: inCluster("server") / 0.6,
    "nodes of Valkey": inCluster("valkey") / 0.5,
    "cores of PostgreSQL": mix("postgres") / 0.6,
    "cores of nginx": cost("nginx", "balancer") / 0.6,
  };
  const list = Object.entries(needed).map(([name, count]) => `${Math.ceil(count)} ${name}`);
  return `A million requests a second: ${list.join(", ")}\n`;
}

type Groups = Readonly<Record<string, readonly number[]>>;

/** CPU time of each group of processes per request, in microseconds. */
async function costsOf(workload: Workload, groups: Groups): Promise<Costs> {
  await load(workload, 1);
  const before = Object.values(groups).map(cpuSecondsOfTrees);
  const { requests } = await load(workload);
  const costs = Object.entries(groups).map(([name, pids], i) => {
    const micros = ((cpuSecondsOfTrees(pids) - (before[i] ?? 0)) / requests) * 1e6;
    return [`${name} µs`, Math.round(micros * 10) / 10];
  });
  return { "requests/s": Math.round(requests / SECONDS), ...Object.fromEntries(costs) };
}

async function measureCapacity(): Promise<void> {
  const { postgres, valkey, storage, key } = await startStores(PETS);
  // A long timeout: this machine is so busy that a late response does not mean a failure.
  const patient = ["--limits-timeout", "1s", "--port", "0", "--trust-proxy", "127.0.0.1"];
  const server = await startPetstore([...storage, ...patient]);
  const groups = { server: [server.pid], postgres: [postgres.pid], valkey: [valkey.pid] };
  const [pets, pet] = [`${server.url}/pets`, "/v1/pets/4711"];
  const costs: Record<string, Costs> = {
    list: await costsOf({ url: pets, key }, groups),
    get: await costsOf({ url: `${pets}/4711`, key }, groups),
    create: await costsOf({ url: pets, key, body: PET_BODY }, groups),
  };
  const port = Number(new URL(server.url).port);
  for (const kind of [nginx, haproxy]) {
    const balancer = await startLoadBalancer(kind, [port, port, port]);
    const workload = { url: `http://127.0.0.1:${balancer.port}${pet}`, key };
    costs[kind.program.name] = await costsOf(workload, { ...groups, balancer: [balancer.pid] });
    await balancer.stop();
  }
  await server.stop();

  const { nodes } = await startValkeyCluster();
  const cluster = ["--limits-url", nodes.map(({ url }) => url).join(",")];
  const clustered = await startPetstore(["--database-url", postgres.url, ...cluster, ...patient]);
  costs["cluster"] = await costsOf(
    { url: `${clustered.url}/pets/4711`, key },
    { ...groups, server: [clustered.pid], valkey: nodes.map(({ pid }) => pid) },
  );
  const machine = describeMachine();
  process.stdout.write(
    `${machineText(machine)}, Bun ${Bun.version}; load average at the end ${machine.load}\n${Bun.inspect.table(costs)}`,
  );
  process.stdout.write(estimate(costs));
}

await runCommand({
  name: "bench:engines",
  async main() {
    requireWrk();
    await measureCapacity();
    return 0;
  },
});
