import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "../harness/child.ts";
import { UsageError } from "../harness/command-line.ts";
import { sendOnce } from "../harness/http-connection.ts";
import { PETSTORE } from "../harness/petstore.ts";
import { freePort, freePorts } from "../harness/ports.ts";
import { residentMb } from "../harness/processes.ts";
import { executable, NGINX } from "../harness/programs.ts";
import { CANDIDATES, type CandidateId } from "./candidates.ts";
import type { Dataset } from "./dataset.ts";
import { nginxConfig } from "./replay/nginx-config.ts";
import type { CapturedResponses } from "./replay/responses.ts";
import type { WorkloadId } from "./workloads.ts";

export interface StartOptions {
  readonly id: CandidateId;
  readonly dataset: Dataset;
  /** For the replay servers. */
  readonly responses?: CapturedResponses;
  readonly core: string | undefined;
  /** The candidate's identifier, unless there are several of it. */
  readonly name?: string;
}

export interface CandidateServer extends StartOptions {
  readonly name: string;
  readonly child: Child;
  portFor(workload: WorkloadId): number;
  /** Where creates are stored, if they are. */
  readonly database?: string;
  /** From the start of the process to its first correct response. */
  readonly startMs: number;
}

/** Servers that are started together, again for every round. */
export class ServerGroup {
  readonly #startMs: number[][];
  readonly #running: CandidateServer[] = [];

  constructor(private readonly members: readonly StartOptions[]) {
    this.#startMs = members.map(() => []);
  }

  /** Stops those that are running, and starts new processes. */
  async start(announce: (name: string) => void): Promise<readonly CandidateServer[]> {
    await this.stop();
    for (const [i, options] of this.members.entries()) {
      announce(options.name ?? CANDIDATES[options.id].title);
      const server = await startCandidate(options);
      this.#running.push(server);
      this.#startMs[i]?.push(server.startMs);
    }
    return [...this.#running];
  }

  async stop(): Promise<void> {
    for (const { child } of this.#running.splice(0)) await child.stop();
  }

  /** How long each start took, and the memory now. */
  facts() {
    return this.#running.map(({ id, name, dataset, child }, i) => {
      return { id, name, dataset, startMs: this.#startMs[i] ?? [], residentMb: residentMb(child.pid) };
    });
  }
}

const START_TIMEOUT_MS = 20_000;

export async function startCandidate(options: StartOptions): Promise<CandidateServer> {
  const startedAt = performance.now();
  const { id, dataset, responses = {}, name = id } = options;
  const { child, portFor, started, ...others } = await spawnCandidate(options);
  const { kind } = CANDIDATES[id];
  const [workload = "list"] = Object.keys(responses) as WorkloadId[];
  const headers = [["Authorization", `Bearer ${dataset.keys.unlimited}`]] as const;
  for (;;) {
    const path = kind === "mock" ? "/pets" : "/v1/pets";
    const response = await sendOnce(portFor(workload), { path, headers }).catch(() => undefined);
    const startMs = performance.now() - startedAt;
    // A replay server may respond with an error, as it should.
    if (response && (response.status === 200 || kind === "replay")) {
      await started;
      return { ...options, ...others, name, child, portFor, startMs };
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

interface SpawnedCandidate extends Pick<CandidateServer, "child" | "portFor" | "database"> {
  /** Resolves when nothing of its start is left to do, which would slow the start of the next one. */
  readonly started?: Promise<unknown>;
}

async function spawnCandidate({
  id,
  dataset,
  responses = {},
  core,
}: StartOptions): Promise<SpawnedCandidate> {
  const env = { ...process.env, NODE_ENV: "production" };
  const spawn = (...command: string[]) => new Child(command, { core, env });
  if (id === "bare" || id === "socket") {
    const path = join(dataset.folder, "responses.json");
    writeFileSync(path, JSON.stringify(responses));
    const child = spawn(process.execPath, join(import.meta.dir, "replay", `${id}.ts`), path);
    const ports: Record<string, number> = JSON.parse((await child.line(/^\{.*\}$/))[0]);
    return { child, portFor: (workload) => ports[workload] ?? 0 };
  }
  if (id === "nginx") {
    const folder = join(dataset.folder, "nginx");
    mkdirSync(folder, { recursive: true });
    const free = freePorts(Object.keys(responses).length);
    const ports = Object.fromEntries(Object.keys(responses).map((workload, i) => [workload, free[i] ?? 0]));
    const config = join(folder, "nginx.conf");
    writeFileSync(config, nginxConfig(folder, responses, ports));
    const child = spawn(executable(NGINX), "-p", folder, "-c", config, "-e", "stderr");
    return { child, portFor: (workload) => ports[workload] ?? 0 };
  }
  const port = freePort();
  const portFor = () => port;
  if (id === "ours") {
    // Here 401 and 429 are measured: neither is limited, nor slowed because one connection gets many in a row.
    const unlimited = ["--anonymous-limits", "1000000000/1000000000", "--trust-proxy", "127.0.0.1"];
    const flags = ["--data", dataset.folder, ...unlimited];
    const child = spawn(...PETSTORE, "serve", "--port", String(port), ...flags);
    return { child, portFor, database: dataset.database, started: child.line(/Rate limits/) };
  }
  if (id === "prism") return { child: spawn(NODE, ...prismArguments(port, dataset)), portFor };
  const database = join(dataset.folder, `${id}.db`);
  if (!existsSync(database)) {
    copyFileSync(dataset.database, database);
    Bun.spawnSync(["sync", database]);
  }
  const runtime = CANDIDATES[id].kind === "node" ? NODE : process.execPath;
  const script = join(import.meta.dir, "peers", `${id}.ts`);
  return { child: spawn(runtime, script, String(port), database), portFor, database };
}

function prismArguments(port: number, { folder }: Dataset): string[] {
  const document = join(folder, "openapi.json");
  if (!existsSync(document)) writeFileSync(document, Bun.spawnSync([...PETSTORE, "openapi"]).stdout);
  const script = join(MODULES, "@stoplight/prism-cli/dist/index.js");
  const flags = "--multiprocess false --cors false --verboseLevel silent".split(" ");
  return [script, "mock", document, "--port", String(port), ...flags];
}

/** The peers have a package.json of their own, so that the service does not depend on them. */
export function installPeers(): void {
  if (existsSync(join(MODULES, "fastify"))) return;
  process.stderr.write("Installing the peers (npm ci --prefix bench); this happens once.\n");
  const npm = ["npm", "ci", "--prefix", import.meta.dir, "--no-audit", "--no-fund", "--loglevel", "error"];
  const { success } = Bun.spawnSync(npm, { stdout: "ignore", stderr: "inherit" });
  if (!success)
    throw new UsageError("the peers cannot be installed; --peers none runs the benchmark without them");
}
