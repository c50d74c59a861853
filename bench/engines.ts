/*
 * `npm run bench:engines`, about a minute, measures the capacity in docs/deployment.md: one server with its own
 * PostgreSQL under full load, and gets through balancers.
 */

import { runCommand } from "../trials/harness/command-line.ts";
import { Fleet } from "../trials/harness/fleet.ts";
import { haproxy, nginx, startLoadBalancer } from "../trials/harness/load-balancer.ts";
import { machineNow } from "../trials/harness/machine.ts";
import { formatFigure, publishTables, tableOf } from "../trials/harness/table.ts";
import { requireWrk } from "../trials/harness/wrk.ts";
import { sharedWorkload } from "./plan.ts";
import { measureSetup, PATIENT_FLAGS, type Setup, startFilledStores } from "./shared.ts";
import type { SharedSample } from "./targets.ts";
import { requestValues, type WorkloadId } from "./workloads.ts";

const PETS = 100_000;
const SECONDS = 3;

/** Estimates what a million requests a second need, in the mix of docs/deployment.md, with as much in reserve. */
function estimate(costs: ReadonlyMap<string, SharedSample>): string {
  const cost = (row: string, part: keyof SharedSample) => costs.get(row)?.[part] ?? 0;
  const mix = (part: keyof SharedSample) =>
    0.9 * cost("list", part) + 0.09 * cost("get", part) + 0.01 * cost("create", part);
  const needed = {
    servers: mix("server") / 0.6,
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
    const { postgres, storage, key } = await startFilledStores(PETS);
    const source = { keys: { unlimited: key, exhausted: "", unknown: "" }, values: requestValues(PETS) };
    const costs = new Map<string, SharedSample>();
    const measure = async (row: string, id: WorkloadId, at: Pick<Setup, "ports" | "pids">) => {
      costs.set(row, await measureSetup({ ...at, source }, sharedWorkload(id), SECONDS));
    };

    const server = await Fleet.start({ size: 1, storage, flags: PATIENT_FLAGS });
    const { ports } = server;
    const pids = [server.pids, [postgres.pid]];
    await measure("list", "list", { ports, pids });
    await measure("get", "get-one", { ports, pids });
    await measure("create", "create-32", { ports, pids });
    for (const kind of [nginx, haproxy]) {
      const balancer = await startLoadBalancer(kind, [...ports, ...ports, ...ports]);
      const through = { ports: [balancer.port], pids: pids.concat([[balancer.pid]]) };
      await measure(kind.program.name, "get-one", through);
      await balancer.stop();
    }
    await server.stop();

    const note = `µs of CPU for one request; ${machineNow()} at the end`;
    const figure = (name: keyof SharedSample) => (row: [string, SharedSample]) => formatFigure(row[1][name]);
    const table = tableOf("Capacity", [...costs], {
      "": ([name]) => name,
      "requests/s": figure("perSecond"),
      server: figure("server"),
      PostgreSQL: figure("postgres"),
      balancer: figure("balancer"),
    });
    publishTables([{ ...table, note }]);
    process.stdout.write(estimate(costs));
    return 0;
  },
});
