/**
 * `npm run bench:engines`, about a minute, measures the capacity in docs/deployment.md: one server with its own
 * PostgreSQL and Valkey under full load, and gets through balancers and with a Valkey cluster.
 */
import { runCommand } from "../trials/harness/command-line.ts";
import { haproxy, nginx, startLoadBalancer } from "../trials/harness/load-balancer.ts";
import { describeMachine, machineText } from "../trials/harness/machine.ts";
import { startPetstore } from "../trials/harness/petstore.ts";
import { formatFigure, plainTable } from "../trials/harness/table.ts";
import { startValkeyCluster } from "../trials/harness/valkey.ts";
import { requireWrk } from "../trials/harness/wrk.ts";
import { sharedWorkload } from "./plan.ts";
import { measureSetup, PATIENT_FLAGS, type Setup, startStores } from "./shared.ts";
import type { SharedSample } from "./targets.ts";
import { requestValues, type WorkloadId } from "./workloads.ts";

const PETS = 100_000;
const SECONDS = 3;

/** What a million requests a second need, in the mix of docs/deployment.md, with as much to spare. */
function estimate(costs: ReadonlyMap<string, SharedSample>): string {
  const cost = (row: string, part: keyof SharedSample) => costs.get(row)?.[part] ?? 0;
  const mix = (part: keyof SharedSample) =>
    0.9 * cost("list", part) + 0.09 * cost("get", part) + 0.01 * cost("create", part);
  const inCluster = (part: keyof SharedSample) => mix(part) + cost("cluster", part) - cost("get", part);
  const needed = {
    servers: inCluster("server") / 0.6,
    "nodes of Valkey": inCluster("valkey") / 0.5,
    "cores of PostgreSQL": mix("postgres") / 0.6,
    "cores of nginx": cost("nginx", "balancer") / 0.6,
  };
  const list = Object.entries(needed).map(([name, count]) => `${Math.ceil(count)} ${name}`);
  return `A million requests a second: ${list.join(", ")}\n`;
}

await runCommand({
  name: "bench:engines",
  maxMinutes: 10,
  async main() {
    requireWrk();
    const { postgres, valkey, storage, key } = await startStores(PETS);
    const source = { keys: { unlimited: key, exhausted: "", unknown: "" }, values: requestValues(PETS) };
    const costs = new Map<string, SharedSample>();
    const measure = async (row: string, id: WorkloadId, at: Pick<Setup, "ports" | "pids">) => {
      costs.set(row, await measureSetup({ ...at, source }, sharedWorkload(id), SECONDS));
    };

    const server = await startPetstore([...storage, ...PATIENT_FLAGS]);
    const pids = [[server.pid], [postgres.pid], [valkey.pid]];
    const port = Number(new URL(server.url).port);
    await measure("list", "list", { ports: [port], pids });
    await measure("get", "get-one", { ports: [port], pids });
    await measure("create", "create-32", { ports: [port], pids });
    for (const kind of [nginx, haproxy]) {
      const balancer = await startLoadBalancer(kind, [port, port, port]);
      const through = { ports: [balancer.port], pids: pids.concat([[balancer.pid]]) };
      await measure(kind.program.name, "get-one", through);
      await balancer.stop();
    }
    await server.stop();

    const { nodes } = await startValkeyCluster();
    const limits = ["--limits-url", nodes.map(({ url }) => url).join(",")];
    const clustered = await startPetstore(["--database-url", postgres.url, ...limits, ...PATIENT_FLAGS]);
    await measure("cluster", "get-one", {
      ports: [Number(new URL(clustered.url).port)],
      pids: [[clustered.pid], [postgres.pid], nodes.map(({ pid }) => pid)],
    });
    const machine = describeMachine();
    const note = `${machineText(machine)}, Bun ${Bun.version}; load average at the end ${machine.load}; µs of CPU for one request`;
    const header = ["", "requests/s", "server", "PostgreSQL", "Valkey", "balancer"];
    const rows = [...costs].map(([row, sample]) => {
      const figures = Object.values(sample).map(formatFigure);
      return [row].concat(figures);
    });
    process.stdout.write(plainTable({ title: "Capacity", note, header, rows }));
    process.stdout.write(estimate(costs));
    return 0;
  },
});
