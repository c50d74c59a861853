import { storePolicy, UNLIMITED } from "../trials/harness/policy.ts";
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "../trials/harness/child.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { UsageError } from "../trials/harness/command-line.ts";
import { sendOnce } from "../trials/harness/http-connection.ts";
import { createKey, PETSTORE, succeed } from "../trials/harness/petstore.ts";
import { freePort } from "../trials/harness/server.ts";
import type { CapturedResponses } from "./replay.ts";
import { type CandidateId, requestValues, type WorkloadId } from "./workloads.ts";

export type Dataset = Awaited<ReturnType<typeof prepareDataset>>;

/** Prepares a data directory of Petstore with pets, API keys for it, and values for requests. */
export async function prepareDataset(pets: number) {
  const directory = temporaryDirectory(`bench-${pets}`);
  const another = temporaryDirectory("bench-unknown-key");
  for (const each of [directory, another]) await succeed("migrate", "--data", each);
  const storage = ["--data", directory];
  const { key: unlimited } = await createKey(storage);
  const { key: exhausted } = await createKey(storage, "enterprise", "--per-minute", "1", "--per-day", "1");
  // This key is well-formed, but belongs to another database.
  const { key: unknown } = await createKey(["--data", another]);
  const database = join(directory, "production.db");
  await insertPets(database, pets);
  return { directory, database, pets, keys: { unlimited, exhausted, unknown }, values: requestValues(pets) };
}

/** The names of pets, used in turn. A quarter of the pets has no status. */
export const PET_NAMES =
  "Rex Mia Luna Bello Minka Oskar Nala Balu Felix Kira Rocky Lilly Simba Emma Bruno Socke".split(" ");
const STATUSES = ["available", "pending", "sold", null];
/** The size of a batch, which takes a second or two. Signals are handled after each. */
const BATCH = 1_000_000;

export async function insertPets(path: string, pets: number): Promise<void> {
  using database = new Database(path, { readwrite: true });
  // Nothing else has opened the file, and an aborted run does not use it.
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF"]) database.run(`PRAGMA ${pragma}`);
  const insert = database.prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)");
  const insertBatch = database.transaction((first: number, last: number) => {
    for (let n = first; n <= last; n++) {
      insert.run(PET_NAMES[n % PET_NAMES.length] ?? "", n % 1_000, STATUSES[n % STATUSES.length] ?? null);
    }
  });
  for (let first = 1; first <= pets; first += BATCH) {
    insertBatch(first, Math.min(pets, first + BATCH - 1));
    await Bun.sleep(0);
  }
  database.run("PRAGMA journal_mode = WAL");
  // The disk must be idle when the measurement begins.
  Bun.spawnSync(["sync", path]);
}

export interface StartOptions {
  readonly id: CandidateId;
  readonly dataset: Dataset;
  /** The responses for the replay servers. */
  readonly responses?: CapturedResponses;
  readonly core: string | undefined;
  /** The name, which is the candidate's identifier unless several servers run it. */
  readonly name: string;
}

export interface CandidateServer extends StartOptions {
  readonly child: Child;
  portFor(workload: WorkloadId): number;
  /** The database that stores creates, if there is one. */
  readonly database?: string;
  /** The time from the start of the process to its first correct response. */
  readonly startMs: number;
}

const START_TIMEOUT_MS = 20_000;

export async function startCandidate(options: StartOptions): Promise<CandidateServer> {
  const startedAt = performance.now();
  const { id, dataset, responses = {} } = options;
  const { child, portFor, started, ...others } = await spawnCandidate(options);
  const [workload = "list"] = Object.keys(responses) as WorkloadId[];
  const headers = [["Authorization", `Bearer ${dataset.keys.unlimited}`]] as const;
  for (;;) {
    const response = await sendOnce(portFor(workload), { path: "/v1/pets", headers }).catch(() => undefined);
    const startMs = performance.now() - startedAt;
    // A replay server may respond with an error, as it should.
    if (response && (response.status === 200 || id === "bare")) {
      await started;
      return { ...options, ...others, child, portFor, startMs };
    }
    if (child.hasExited || startMs > START_TIMEOUT_MS) {
      await child.stop();
      throw new Error(`${id} did not start: ${child.output}`);
    }
    await Bun.sleep(1);
  }
}

const MODULES = join(import.meta.dir, "node_modules");
const NODE = join(MODULES, `node-linux-${process.arch}`, "bin/node");

/**
 * Spawns a server. `started` resolves when its start is complete, so that it does not slow the start of the next one.
 */
async function spawnCandidate(options: StartOptions) {
  const { id, dataset, responses = {}, core } = options;
  const env = { ...process.env, NODE_ENV: "production" };
  const spawn = (...command: string[]) => new Child(command, { core, env });
  if (id === "bare") {
    const path = join(dataset.directory, "responses.json");
    writeFileSync(path, JSON.stringify(responses));
    const child = spawn(process.execPath, join(import.meta.dir, "replay.ts"), path);
    const ports: Record<string, number> = JSON.parse((await child.line(/^\{.*\}$/))[0]);
    return { child, portFor: (workload: WorkloadId) => ports[workload] ?? 0 };
  }
  const port = freePort();
  const portFor = () => port;
  if (id === "ours") {
    // The workloads measure 401 and 429 responses, so these must be neither limited nor slowed because one connection
    // gets many in a row.
    await storePolicy(["--data", dataset.directory], UNLIMITED);
    const flags = ["--data", dataset.directory, "--trust-proxy", "127.0.0.1"];
    const child = spawn(...PETSTORE, "serve", "--port", String(port), ...flags);
    return { child, portFor, database: dataset.database, started: child.line(/Rate limits/) };
  }
  const database = join(dataset.directory, `${id}.db`);
  if (!existsSync(database)) {
    copyFileSync(dataset.database, database);
    Bun.spawnSync(["sync", database]);
  }
  const runtime = id === "fastify" ? NODE : process.execPath;
  const script = join(import.meta.dir, "peers", `${id}.ts`);
  return { child: spawn(runtime, script, String(port), database), portFor, database };
}

/** Installs the peers, which have a package.json of their own, so that the service does not depend on them. */
export function installPeers(): void {
  if (existsSync(join(MODULES, "fastify"))) return;
  process.stderr.write("Installing the peers (npm ci --prefix bench); this happens once.\n");
  const npm = ["npm", "ci", "--prefix", import.meta.dir, "--no-audit", "--no-fund", "--loglevel", "error"];
  const { success } = Bun.spawnSync(npm, { stdout: "ignore", stderr: "inherit" });
  if (!success)
    throw new UsageError("the peers cannot be installed; --peers none runs the benchmark without them");
}
