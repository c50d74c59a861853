/**
 * What PostgreSQL and Valkey cost, against SQLite and rate limits in the server's memory:
 * `npm run bench:engines [-- --docs] [-- --rounds N]`. In each round every server is measured once. On a machine with
 * two cores the databases and the load share them with the server; the table says so.
 *
 * `npm run bench:engines -- --capacity`, about a minute, measures the capacity in docs/deployment.md: one server with
 * its own PostgreSQL and Valkey under full load. CPU time comes from the kernel, by process, so a figure is what a
 * request costs and does not include waiting for a core.
 */
import { SQL } from "bun";
import { createPet, PET_BODY } from "../trials/harness/api-client.ts";
import { temporaryFolder } from "../trials/harness/cleanup.ts";
import { integer, isGiven, runCommand } from "../trials/harness/command-line.ts";
import { haproxy, nginx, startLoadBalancer } from "../trials/harness/load-balancer.ts";
import { describeMachine, machineText } from "../trials/harness/machine.ts";
import { createKey, startPetstore } from "../trials/harness/petstore.ts";
import { postgresUrl, startPostgres } from "../trials/harness/postgres.ts";
import { cpuSeconds, processTree } from "../trials/harness/processes.ts";
import { median, ratioOf } from "../trials/harness/statistics.ts";
import { formatCount, publish, type Table } from "../trials/harness/table.ts";
import { startValkey, startValkeyCluster, valkeyUrl } from "../trials/harness/valkey.ts";
import { loadWith, requireWrk } from "../trials/harness/wrk.ts";

const PETS = 1_000;
const CAPACITY_PETS = 100_000;
const SECONDS = 3;
const CONNECTIONS = 64;

interface Workload {
  readonly url: string;
  readonly key: string;
  readonly body?: string;
}

const load = (workload: Workload, seconds = SECONDS) =>
  loadWith({ ...workload, connections: CONNECTIONS, seconds });

async function startSetup(name: string, flags: readonly string[]) {
  const storage = ["--data", temporaryFolder("bench-engines"), ...flags];
  const { key } = await createKey(storage);
  const { url } = await startPetstore([...storage, "--port", "0"]);
  for (let created = 0; created < PETS; created += 100) {
    await Promise.all(Array.from({ length: 100 }, () => createPet(url, key)));
  }
  return { name, pets: { url: `${url}/pets`, key }, lists: [] as number[], creates: [] as number[] };
}

type Setup = Awaited<ReturnType<typeof startSetup>>;

function tableOf(setups: readonly Setup[], rounds: number): Table {
  const [embedded] = setups;
  const { cores, cpu, kernel } = describeMachine();
  const cells = (own: readonly number[], baseline: readonly number[] = []) => [
    formatCount(median(own)),
    ratioOf(own, baseline).median.toFixed(2),
  ];
  return {
    title: "PostgreSQL and Valkey",
    note: `${rounds} rounds of ${SECONDS} s, ${CONNECTIONS} connections, medians; server, databases and load share ${cores} cores (${cpu}, Linux ${kernel}, Bun ${Bun.version}). PostgreSQL runs with fsync off, as in the tests; SQLite with synchronous=FULL.`,
    header: ["data, rate limits", "list/s", "× embedded", "create/s", "× embedded"],
    rows: setups.map(({ name, lists, creates }) => [
      name,
      ...cells(lists, embedded?.lists),
      ...cells(creates, embedded?.creates),
    ]),
  };
}

async function compareEngines(rounds: number): Promise<Table> {
  const postgres = async () => ["--database-url", await postgresUrl()];
  const valkey = async () => ["--limits-url", await valkeyUrl()];
  const setups = [
    await startSetup("SQLite, in process", []),
    await startSetup("SQLite, Valkey", await valkey()),
    await startSetup("PostgreSQL, in process", await postgres()),
    await startSetup("PostgreSQL, Valkey", [...(await postgres()), ...(await valkey())]),
  ];
  // Round 0 is the warm-up.
  for (let round = 0; round <= rounds; round++) {
    for (const { name, pets, lists, creates } of setups) {
      const [listed, created] = [await load(pets), await load({ ...pets, body: PET_BODY })];
      if (round === 0) continue;
      lists.push(listed.requests / (listed.micros / 1e6));
      creates.push(created.requests / (created.micros / 1e6));
      process.stderr.write(`round ${round} of ${rounds}: ${name}\n`);
    }
  }
  return tableOf(setups, rounds);
}

type Groups = Readonly<Record<string, readonly number[]>>;

const cpuOf = (pids: readonly number[]) =>
  pids.flatMap(processTree).reduce((sum, pid) => sum + cpuSeconds(pid), 0);

/** CPU time of each group of processes per request, in microseconds. */
async function costsOf(workload: Workload, groups: Groups): Promise<Record<string, number>> {
  await load(workload, 1);
  const before = Object.values(groups).map(cpuOf);
  const { requests } = await load(workload);
  const costs = Object.entries(groups).map(([name, pids], i) => {
    const micros = ((cpuOf(pids) - (before[i] ?? 0)) / requests) * 1e6;
    return [`${name} µs`, Math.round(micros * 10) / 10];
  });
  return { "requests/s": Math.round(requests / SECONDS), ...Object.fromEntries(costs) };
}

async function measureCapacity(): Promise<void> {
  const [postgres, valkey] = [await startPostgres({ durable: true }), await startValkey()];
  const storage = ["--database-url", postgres.url, "--limits-url", valkey.url];
  const { key } = await createKey(storage);
  const sql = new SQL(postgres.url, { max: 1 });
  await sql.unsafe(`INSERT INTO production.pets (name, category_id, status)
    SELECT 'Rex ' || n, n % 50, (ARRAY['available', 'pending', 'sold'])[1 + n % 3]
    FROM generate_series(1, ${CAPACITY_PETS}) AS n`);
  await sql.unsafe("VACUUM ANALYZE production.pets");

  // A long timeout: this machine is so busy that a late response does not mean a failure.
  const patient = ["--limits-timeout", "1s", "--port", "0", "--trust-proxy", "127.0.0.1"];
  const server = await startPetstore([...storage, ...patient]);
  const groups = { server: [server.pid], postgres: [postgres.pid], valkey: [valkey.pid] };
  const [pets, pet] = [`${server.url}/pets`, "/v1/pets/4711"];
  const costs: Record<string, Record<string, number>> = {
    "list, first page of 20": await costsOf({ url: pets, key }, groups),
    get: await costsOf({ url: `${pets}/4711`, key }, groups),
    create: await costsOf({ url: pets, key, body: PET_BODY }, groups),
  };
  const port = Number(new URL(server.url).port);
  for (const kind of [nginx, haproxy]) {
    const balancer = await startLoadBalancer(kind, [port, port, port]);
    const workload = { url: `http://127.0.0.1:${balancer.port}${pet}`, key };
    const name = `get through ${kind.program.name}`;
    costs[name] = await costsOf(workload, { ...groups, balancer: [balancer.pid] });
    await balancer.stop();
  }
  await server.stop();

  const { nodes } = await startValkeyCluster();
  const cluster = ["--limits-url", nodes.map(({ url }) => url).join(",")];
  const clustered = await startPetstore(["--database-url", postgres.url, ...cluster, ...patient]);
  costs["get, Valkey as a cluster"] = await costsOf(
    { url: `${clustered.url}/pets/4711`, key },
    { ...groups, server: [clustered.pid], valkey: nodes.map(({ pid }) => pid) },
  );
  const machine = describeMachine();
  process.stdout.write(
    `${machineText(machine)}, Bun ${Bun.version}; load average at the end ${machine.load}\n${Bun.inspect.table(costs)}`,
  );
}

await runCommand({
  name: "bench:engines",
  flags: { docs: isGiven, rounds: integer(5, 50), capacity: isGiven },
  async main({ docs, rounds, capacity }) {
    requireWrk();
    if (!capacity) return publish({ tables: [await compareEngines(rounds)], section: "engines" }, { docs });
    await measureCapacity();
    return 0;
  },
});
