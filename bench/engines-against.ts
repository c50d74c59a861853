/* Compares servers on PostgreSQL with those of another release, by rate and by the CPU time of all processes. */

import { join } from "node:path";
import { runProgram } from "../trials/harness/child.ts";
import { Fleet } from "../trials/harness/fleet.ts";
import { PETSTORE } from "../trials/harness/petstore.ts";
import { onFreePort, startServer } from "../trials/harness/server.ts";
import { ratioOf } from "../trials/harness/statistics.ts";
import { type Table, tableOf } from "../trials/harness/table.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { sharedWorkload } from "./plan.ts";
import { addKey, measureSetup, PROXY_FLAGS, type Setup, startFilledStores } from "./shared.ts";
import type { SharedSample } from "./targets.ts";
import { requestValues, type Workload } from "./workloads.ts";

const KEYS = 12;
const SECONDS = 2;

const LOADS: readonly (readonly [name: string, workload: Workload, servers?: number])[] = [
  ["list", sharedWorkload("list")],
  ["get", sharedWorkload("get")],
  ["create", sharedWorkload("create-32")],
  ["list, one request at a time", { ...sharedWorkload("list"), connections: 1 }, 1],
];

interface Measured {
  readonly name: string;
  readonly setup: Setup;
  stop(): Promise<void>;
}

interface AgainstOptions {
  /** The directory of the other release. */
  readonly directory: string;
  readonly servers: number;
  readonly pets: number;
  readonly rounds: number;
}

export async function measureAgainst({ directory, servers, pets, rounds }: AgainstOptions): Promise<Table> {
  const program = [join(directory, "petstore")];
  const { out } = await runProgram([...program, "--version"]);
  const version = /\d+\.\d+\.\d+/.exec(out)?.[0] ?? directory;
  const start = { servers, pets };
  const setups = [
    await startSetup({ ...start, name: "this", program: PETSTORE }),
    await startSetup({ ...start, name: version, program }),
    ...(await startWithValkey({ ...start, name: `${version} with Valkey`, program })),
  ];
  const samples = new Map<string, SharedSample[]>();
  const samplesOf = (load: string, name: string) => {
    const found = samples.get(`${load} ${name}`) ?? [];
    samples.set(`${load} ${name}`, found);
    return found;
  };
  for (let round = 0; round < rounds; round++) {
    for (const [load, workload, size = servers] of LOADS) {
      for (const { name, setup } of round % 2 === 0 ? setups : setups.toReversed()) {
        const ports = setup.ports.slice(0, size);
        samplesOf(load, name).push(await measureSetup({ ...setup, ports }, workload, SECONDS));
      }
    }
  }
  for (const setup of setups) await setup.stop();
  const [, ...others] = setups;
  const rows = LOADS.flatMap(([load]) => others.map(({ name }) => ({ load, name })));
  const ratio = (figure: (sample: SharedSample) => number) => (row: (typeof rows)[number]) => {
    const [ours, theirs] = ["this", row.name].map((name) => samplesOf(row.load, name).map(figure));
    return ratioOf(ours ?? [], theirs ?? []).median.toFixed(2);
  };
  return tableOf(`Against ${version}, ${servers} servers, ${KEYS} keys, medians of ${rounds} rounds`, rows, {
    "": ({ load, name }) => `${load}, against ${name}`,
    "rate, at least 0.95": ratio(({ perSecond }) => perSecond),
    "CPU of all processes": ratio(({ server, postgres, balancer }) => server + postgres + balancer),
    "CPU of the servers": ratio(({ server }) => server),
  });
}

interface SetupOptions extends Pick<AgainstOptions, "servers" | "pets"> {
  readonly name: string;
  readonly program: readonly string[];
  /** Another process that counts, and the flags that name it. */
  readonly counter?: { readonly pid: number; readonly flags: readonly string[]; stop(): Promise<void> };
}

async function startSetup({ name, program, servers, pets, counter }: SetupOptions): Promise<Measured> {
  const { postgres, storage, key } = await startFilledStores(pets, program);
  const keys = [key];
  while (keys.length < KEYS) keys.push(await addKey(program, storage));
  const flags = [...PROXY_FLAGS, ...(counter?.flags ?? [])];
  const fleet = await Fleet.start({ size: servers, storage, flags, program });
  const source = { keys: { unlimited: key, exhausted: "", unknown: "" }, values: requestValues(pets) };
  const pids = [fleet.pids, [postgres.pid], counter ? [counter.pid] : []];
  return {
    name,
    setup: { ports: fleet.ports, pids, source, keys },
    async stop() {
      for (const each of [fleet, postgres, counter]) await each?.stop();
    },
  };
}

/** Release 1.3.0 can count in Valkey, too. Without the program, this is not measured. */
async function startWithValkey(options: SetupOptions): Promise<readonly Measured[]> {
  const valkey = Bun.which("valkey-server") ?? Bun.which("redis-server");
  const { out } = await runProgram([...options.program, "serve", "--help"]);
  if (valkey === null || !out.includes("--limits-url")) return [];
  const cwd = temporaryDirectory("valkey");
  const counter = await onFreePort((port) =>
    startServer({
      url: `redis://127.0.0.1:${port}`,
      cwd,
      command: [valkey, "--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
      ready: /Ready to accept connections/i,
      stop: "SIGTERM",
    }),
  );
  const { pid, stop } = counter;
  return [await startSetup({ ...options, counter: { pid, stop, flags: ["--limits-url", counter.url] } })];
}
