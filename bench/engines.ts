/*
 * `npm run bench:engines`, about a minute, measures how far PostgreSQL carries: the processor time of requests to
 * servers with their own PostgreSQL under full load, alone and together, of requests one after the other, and through
 * balancers. `--hot-key` and `--against DIR` measure something else instead.
 */

import { integer, isGiven, runCommand, text } from "../trials/harness/command-line.ts";
import { Fleet } from "../trials/harness/fleet.ts";
import { haproxy, nginx, startLoadBalancer } from "../trials/harness/load-balancer.ts";
import { machineNow } from "../trials/harness/machine.ts";
import { formatFigure, publishTables, tableOf } from "../trials/harness/table.ts";
import { requireWrk } from "../trials/harness/wrk.ts";
import { measureAgainst } from "./engines-against.ts";
import { measureHotKey } from "./hot-key.ts";
import { sharedWorkload } from "./plan.ts";
import { measureSetup, PROXY_FLAGS, type Setup, startFilledStores } from "./shared.ts";
import type { SharedSample } from "./targets.ts";
import { requestValues, type Workload, type WorkloadId } from "./workloads.ts";

const PETS = 100_000;
const SECONDS = 3;
const SERVERS = 4;

const HELP = `Usage: npm run bench:engines [-- OPTIONS]

Measures the processor time that a thousand requests a second take of servers, PostgreSQL and balancers.

  --docs          Also write the figures to docs/deployment.md
  --hot-key       Measure only what other keys wait while one is much used
  --against DIR   Compare only with another checkout or release, by rate and the CPU time of all processes
  --rounds N      The rounds of --hot-key and --against (default: 5)
  --help          Show this
`;

type Row = readonly [name: string, sample: SharedSample];

await runCommand({
  name: "bench:engines",
  help: HELP,
  flags: { docs: isGiven, "hot-key": isGiven, against: text, rounds: integer(5, 51) },
  maxMinutes: 60,
  async main({ docs, "hot-key": isHotKey, against, rounds }) {
    requireWrk();
    const size = { servers: SERVERS, pets: PETS, rounds };
    if (isHotKey) publishTables([await measureHotKey(size)], false);
    if (against !== undefined) publishTables([await measureAgainst({ ...size, directory: against })], false);
    if (isHotKey || against !== undefined) return 0;
    const { postgres, storage, key } = await startFilledStores(PETS);
    const source = { keys: { unlimited: key, exhausted: "", unknown: "" }, values: requestValues(PETS) };
    const rows: Row[] = [];
    const measure = async (
      name: string,
      workload: WorkloadId | Workload,
      at: Pick<Setup, "ports" | "pids">,
    ) => {
      const load = typeof workload === "string" ? sharedWorkload(workload) : workload;
      rows.push([name, await measureSetup({ ...at, source }, load, SECONDS)]);
    };

    const fleet = await Fleet.start({ size: SERVERS, storage, flags: PROXY_FLAGS });
    for (const size of [1, SERVERS]) {
      const at = { ports: fleet.ports.slice(0, size), pids: [fleet.pids.slice(0, size), [postgres.pid]] };
      const place = size === 1 ? "" : `, ${size} servers`;
      await measure(`list${place}`, "list", at);
      await measure(`get${place}`, "get", at);
      await measure(`create${place}`, "create-32", at);
      if (size === 1)
        await measure("list, one request at a time", { ...sharedWorkload("list"), connections: 1 }, at);
    }
    const ports = fleet.ports.slice(0, 1);
    for (const kind of [nginx, haproxy]) {
      const balancer = await startLoadBalancer(kind, [...ports, ...ports, ...ports]);
      const pids = [fleet.pids.slice(0, 1), [postgres.pid], [balancer.pid]];
      await measure(`get through ${kind.program.name}`, "get-one", { ports: [balancer.port], pids });
      await balancer.stop();
    }
    await fleet.stop();

    const cores = (part: "server" | "postgres" | "balancer") => (row: Row) =>
      row[1][part] === 0 ? "–" : (row[1][part] / 1_000).toFixed(3);
    const table = tableOf("Cores for 1,000 requests a second", rows, {
      "": ([name]) => name,
      "requests/s": ([, { perSecond }]) => formatFigure(perSecond),
      servers: cores("server"),
      PostgreSQL: cores("postgres"),
      balancer: cores("balancer"),
    });
    const note = `64 connections; everything runs on ${machineNow()} at the end`;
    publishTables([{ ...table, note }], docs && { file: "docs/deployment.md", name: "engines" });
    return 0;
  },
});
