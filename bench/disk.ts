/* Measures what reads and writes take while the disk is slow. */

import { join } from "node:path";
import { Child } from "../trials/harness/child.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { flushDisk } from "../trials/harness/machine.ts";
import { PETSTORE } from "../trials/harness/petstore.ts";
import { freePort } from "../trials/harness/server.ts";
import { type RequestPart, runWrk } from "../trials/harness/wrk.ts";
import {
  DELAYS_MS,
  type DiskCell,
  type DiskLoad,
  type DiskResults,
  type DiskSample,
} from "./disk-figures.ts";
import type { Run } from "./rounds.ts";
import { insertPets } from "./servers.ts";
import { makeKey } from "./shared.ts";
import { compileSlowSync } from "../trials/harness/slow-sync.ts";
import { kindsOf, requestOf, requestValues, type Workload, workloadOf } from "./workloads.ts";

/** The loads, each with the number of its connections and of those that write meanwhile. */
const LOADS: readonly (readonly [load: DiskLoad, connections: number, writers: readonly number[]])[] = [
  ["list", 1, [0, 1, 4, 32]],
  ["health", 1, [0, 4, 32]],
  ["list", 32, [0, 4]],
  ["create", 1, [0]],
  ["create", 4, [0]],
  ["create", 16, [0]],
  ["create", 32, [0]],
  ["mix", 64, [0]],
];
const SECONDS = 1;
/** How long writers write before reads beside them are measured, and after that. */
const MARGIN_MS = 300;
const MIX = { list: 90, create: 10 } as const;

interface DiskOptions {
  readonly rounds: number;
  readonly pets: number;
  /** The directory of another release, which is measured, too. */
  readonly against: string | undefined;
}

/** Measures the releases in turn, each with every delay. */
export async function measureDisk(run: Run, { rounds, pets, against }: DiskOptions): Promise<DiskResults> {
  const slowSync = compileSlowSync();
  if (typeof slowSync === "string") return { skipped: slowSync, cells: [] };
  const programs = [
    { release: "this", program: PETSTORE },
    ...(against === undefined ? [] : [{ release: "other", program: [join(against, "petstore")] } as const]),
  ] as const;
  const measured = new Map<string, DiskCell & { readonly samples: DiskSample[] }>();
  const data = new Map<string, Data>();
  for (const { release, program } of programs) {
    run.announce(`disk · creating pets for ${release} release`);
    data.set(release, await prepare(program, pets));
  }
  await flushDisk();
  for (let round = 1; round <= rounds; round++) {
    for (const delayMs of DELAYS_MS) {
      for (const { release, program } of programs) {
        run.announce(`disk · round ${round} of ${rounds} · sync + ${delayMs} ms · ${release} release`);
        const own = data.get(release);
        if (own === undefined) continue;
        const server = await start(program, own, { core: run.cores?.server, env: slowSync(delayMs) });
        try {
          for (const [load, connections, writers, sample] of await measureServer(server, run)) {
            const name = JSON.stringify([release, delayMs, load, connections, writers]);
            const cell = measured.get(name) ?? { release, delayMs, load, connections, writers, samples: [] };
            cell.samples.push(sample);
            measured.set(name, cell);
          }
        } finally {
          await server.child.stop();
        }
      }
    }
  }
  return { cells: [...measured.values()] };
}

interface Data {
  readonly directory: string;
  readonly key: string;
  readonly values: ReturnType<typeof requestValues>;
}

async function prepare(program: readonly string[], pets: number): Promise<Data> {
  const directory = temporaryDirectory("bench-disk");
  const key = await makeKey(program, ["--data", directory]);
  await insertPets(join(directory, "production.db"), pets);
  return { directory, key, values: requestValues(pets) };
}

interface DiskServer extends Data {
  readonly child: Child;
  readonly port: number;
}

async function start(
  program: readonly string[],
  data: Data,
  { core, env }: { core: string | undefined; env: Readonly<Record<string, string>> },
): Promise<DiskServer> {
  const port = freePort();
  const flags = ["--data", data.directory, "--port", String(port), "--admin-address", "off"];
  const child = new Child([...program, "serve", ...flags], { core, env: { ...process.env, ...env } });
  await child.line(/Rate limits/);
  return { ...data, child, port };
}

type Measured = readonly [load: DiskLoad, connections: number, writers: number, sample: DiskSample];

async function measureServer(server: DiskServer, run: Run): Promise<Measured[]> {
  const core = run.cores?.load;
  const { port } = server;
  await runWrk({ port, connections: 32, seconds: 2, parts: partsOf("mix", server), core });
  const measured: Measured[] = [];
  for (const [load, connections, numbers] of LOADS) {
    for (const writers of numbers) {
      const writing =
        writers > 0 &&
        runWrk({ port, connections: writers, seconds: SECONDS + 1, parts: partsOf("create", server), core });
      // Its plan is a file with the port in its name, which it has read by then.
      if (writing) await Bun.sleep(MARGIN_MS);
      const parts = partsOf(load, server);
      const figures = await runWrk({ port, connections, seconds: SECONDS, parts, core });
      const faults = figures.rejected + figures.failed + ((await writing) || { rejected: 0 }).rejected;
      if (faults > 0) throw new Error(`${load}: ${faults} requests have failed`);
      const perSecond = figures.requests / (figures.micros / 1e6);
      measured.push([
        load,
        connections,
        writers,
        { perSecond, p50Ms: figures.p50 / 1e3, p99Ms: figures.p99 / 1e3 },
      ]);
    }
  }
  return measured;
}

function partsOf(load: DiskLoad, { key, values }: Data): RequestPart[] {
  if (load === "health")
    return [{ prefix: "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", suffix: "", share: 1 }];
  const keys = { unlimited: key, exhausted: key, unknown: key };
  const mix = load === "mix" ? MIX : { [load]: 100 };
  const workload: Workload = { ...workloadOf("mix"), mix };
  return kindsOf(workload).map((kind) => requestOf(kind, workload, "ours", { keys, values }));
}
