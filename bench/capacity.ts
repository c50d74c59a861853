/**
 * Measures the capacity in docs/deployment.md: `npx bun bench/capacity.ts`, about a minute, needs wrk.
 *
 * One server with its own PostgreSQL and Valkey runs under full load. CPU time comes from the kernel, by process, so a
 * figure is what a request costs and does not include waiting for a core.
 */
import { RedisClient, SQL } from "bun";
import { connect, createServer } from "node:net";
import { PET_BODY } from "../harness/api-client.ts";
import { haproxy, nginx, startLoadBalancer } from "../harness/load-balancer.ts";
import { describeMachine } from "../harness/machine.ts";
import { createKey, startPetstore } from "../harness/petstore.ts";
import { startPostgres } from "../harness/postgres.ts";
import { cpuSeconds, processTree } from "../harness/processes.ts";
import { median } from "../harness/statistics.ts";
import { startValkeyCluster } from "../harness/valkey-cluster.ts";
import { startValkey } from "../harness/valkey.ts";
import { loadWith } from "../harness/wrk.ts";

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

/** A TCP proxy that counts bytes. */
async function meter(url: string) {
  const { hostname, port } = new URL(url);
  const bytes = { there: 0, back: 0 };
  const server = createServer((socket) => {
    const onward = connect(Number(port), hostname);
    socket.on("data", (chunk) => void ((bytes.there += chunk.length), onward.write(chunk)));
    onward.on("data", (chunk) => void ((bytes.back += chunk.length), socket.write(chunk)));
    for (const end of [socket, onward]) {
      end.on("error", () => {});
      end.on("close", () => void (socket.destroy(), onward.destroy()));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return { url: url.replace(`:${port}`, `:${address.port}`), bytes };
}

/** Bytes that a list takes on each connection. There is no other load, so a batch for Valkey is one request. */
async function countBytes(key: string, engines: { postgres: string; valkey: string }) {
  const postgres = await meter(engines.postgres);
  const valkey = await meter(engines.valkey);
  const urls = ["--database-url", postgres.url, "--limits-url", valkey.url];
  const server = await startPetstore([...urls, "--port", "0"]);
  const clients = await meter(server.url);
  const ask = async () =>
    (await fetch(`${clients.url}/pets`, { headers: { Authorization: `Bearer ${key}` } })).text();
  await ask();
  const connections = Object.entries({ clients, postgres, valkey });
  const before = connections.map(([, { bytes }]) => ({ ...bytes }));
  const times = 200;
  for (let i = 0; i < times; i++) await ask();
  await server.stop();
  const each = connections.map(([name, { bytes }], i) => {
    const { there = 0, back = 0 } = before[i] ?? {};
    const share = (sum: number) => Math.round(sum / times);
    return [name, { "bytes there": share(bytes.there - there), "bytes back": share(bytes.back - back) }];
  });
  return Object.fromEntries(each);
}

/** Valkey's memory for one key, measured with a hundred thousand copies. */
async function subjectBytes(url: string): Promise<number> {
  const client = new RedisClient(url);
  const used = async () =>
    Number(/used_memory:(\d+)/.exec(String(await client.send("INFO", ["memory"])))?.[1]);
  const copies = 100_000;
  const copy = `local image = redis.call('DUMP', KEYS[1])
    for i = 1, ${copies} do
      redis.call('RESTORE', 'petstore:production:{key:' .. (1000000 + i) .. '}', 86400000, image)
    end`;
  const before = await used();
  await client.send("EVAL", [copy, "1", "petstore:production:{key:1}"]);
  const bytes = ((await used()) - before) / copies;
  client.close();
  return Math.round(bytes);
}

/** The median of three hundred creates in sequence, and the disk space of a pet with its indexes. */
async function commitAndSize(sql: SQL) {
  const took: number[] = [];
  for (let i = 0; i < 300; i++) {
    const began = performance.now();
    await sql`INSERT INTO production.pets (name, category_id, status) VALUES ('Rex', 7, 'available')`;
    took.push(performance.now() - began);
  }
  const [size] = await sql<[{ each: number }]>`
    SELECT pg_total_relation_size('production.pets')::float8 / count(*) AS each FROM production.pets`;
  return `A commit takes ${median(took).toFixed(2)} ms, a pet ${Math.round(size.each)} bytes of PostgreSQL's disk.`;
}

const [postgres, valkey] = [await startPostgres({ durable: true }), await startValkey()];
const place = ["--database-url", postgres.url, "--limits-url", valkey.url];
const { key } = await createKey(place);
const sql = new SQL(postgres.url, { max: 1 });
await sql.unsafe(`INSERT INTO production.pets (name, category_id, status)
  SELECT 'Rex ' || n, n % 50, (ARRAY['available', 'pending', 'sold'])[1 + n % 3]
  FROM generate_series(1, ${PETS}) AS n`);
await sql.unsafe("VACUUM ANALYZE production.pets");

// A long timeout: this machine is so busy that a late response does not mean a failure.
const patient = ["--limits-timeout", "1s", "--port", "0", "--trust-proxy", "127.0.0.1"];
const server = await startPetstore([...place, ...patient]);
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

const { cores, cpu, kernel, load: average } = describeMachine();
const connections = await countBytes(key, { postgres: postgres.url, valkey: valkey.url });
process.stdout
  .write(`${cores} cores of ${cpu}, Linux ${kernel}, Bun ${Bun.version}; load average at the end ${average}
${Bun.inspect.table(costs)}${Bun.inspect.table(connections)}A key takes ${await subjectBytes(valkey.url)} bytes of Valkey's memory.
${await commitAndSize(sql)}
`);
process.exit(0);
