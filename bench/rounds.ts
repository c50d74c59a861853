import { Database } from "bun:sqlite";
import { type HttpResponse, sendOnce } from "../trials/harness/http-connection.ts";
import type { Cores } from "../trials/harness/machine.ts";
import { cpuSeconds } from "../trials/harness/processes.ts";
import { runWrk, type WrkFigures } from "../trials/harness/wrk.ts";
import type { PlannedLoad } from "./plan.ts";
import { type CapturedResponse, routeOf } from "./replay.ts";
import type { CandidateServer } from "./servers.ts";
import type { Sample } from "./targets.ts";
import {
  type CandidateId,
  isPeer,
  kindsOf,
  type RequestKind,
  requestOf,
  statusOf,
  type Workload,
  type WorkloadId,
  workloadOf,
} from "./workloads.ts";

export interface Run {
  readonly cores: Cores | undefined;
  readonly seconds: number;
  announce(what: string): void;
}

/** Rotates the servers, so that each round begins with another one and the order favours none. */
function rotate<T>(servers: readonly T[], round: number): T[] {
  const start = servers.length === 0 ? 0 : round % servers.length;
  return [...servers.slice(start), ...servers.slice(0, start)];
}

export interface RoundsOptions<Server, Figures> {
  readonly loads: readonly PlannedLoad[];
  /** Starts the servers of a round. */
  start(): Promise<readonly Server[]>;
  announce(what: string): void;
  measure(server: Server, workload: Workload): Promise<Figures>;
}

/** Measures all samples by workload and server. The servers are those of the last round. */
export async function measureRounds<Server extends { readonly name: string }, Figures>(
  options: RoundsOptions<Server, Figures>,
): Promise<{ workload: WorkloadId; server: Server; samples: readonly Figures[] }[]> {
  const { loads, start, announce, measure } = options;
  const measured = new Map<string, { workload: WorkloadId; server: Server; samples: Figures[] }>();
  const rounds = Math.max(0, ...loads.map((load) => load.rounds));
  for (let round = 1; round <= rounds; round++) {
    const servers = await start();
    for (const load of loads.filter((each) => round <= each.rounds)) {
      const workload = workloadOf(load.workload);
      const chosen = servers.filter(({ name }) => load.servers.includes(name));
      for (const server of rotate(chosen, round)) {
        announce(`round ${round} of ${load.rounds} · ${workload.title} · ${server.name}`);
        const name = `${workload.id} ${server.name}`;
        const samples = measured.get(name)?.samples ?? [];
        samples.push(await measure(server, workload));
        measured.set(name, { workload: workload.id, server, samples });
      }
    }
  }
  return loads.flatMap(({ workload, servers }) =>
    servers.flatMap((name) => measured.get(`${workload} ${name}`) ?? []),
  );
}

interface LoadOptions {
  readonly run: Run;
  readonly warmUpSeconds?: number;
  readonly seconds?: number;
  readonly connections?: number;
  readonly delayMs?: number;
}

/** How many values each server has received, so that rounds do not repeat them. */
const offsets = new Map<string, number>();

export async function measureLoad(
  server: CandidateServer,
  workload: Workload,
  { run, warmUpSeconds, seconds = run.seconds, connections = workload.connections, delayMs = 0 }: LoadOptions,
): Promise<Sample> {
  if (warmUpSeconds !== undefined) await measureLoad(server, workload, { run, seconds: warmUpSeconds });
  const { id, name, child } = server;
  const expectedBytes = await checkResponses(server, workload);
  const offset = offsets.get(`${name} ${workload.id}`) ?? 0;
  const parts = kindsOf(workload).map((kind) => requestOf(kind, workload, id, server.dataset));
  const database = workload.mix.create === undefined ? undefined : server.database;
  const rowsBefore = database === undefined ? 0 : highestPetId(database);
  const cpuBefore = cpuSeconds(child.pid);
  const port = server.portFor(workload.id);
  const figures = await runWrk({ port, connections, seconds, parts, offset, delayMs, core: run.cores?.load });
  const cpu = cpuSeconds(child.pid) - cpuBefore;

  const { requests } = figures;
  checkRound(id, workload, figures, expectedBytes);
  if (database !== undefined)
    checkRows(id, workload, { rows: highestPetId(database) - rowsBefore, requests, connections });
  offsets.set(`${name} ${workload.id}`, offset + requests + connections);
  return {
    perSecond: requests / (figures.micros / 1e6),
    p50Ms: figures.p50 / 1_000,
    p99Ms: figures.p99 / 1_000,
    cpuMicros: (cpu * 1e6) / requests,
    loadCpu: figures.loadCpu,
  };
}

/** A wrong response. Such a server is not measured, and the run ends if it occurs in a round. */
export class WrongResponse extends Error {
  constructor(id: CandidateId, { title }: Workload, problem: string) {
    super(`${id}, ${title}: ${problem}`);
  }
}

export function send(server: CandidateServer, workload: Workload, kind: RequestKind): Promise<HttpResponse> {
  const { prefix, suffix, values } = requestOf(kind, workload, server.id, server.dataset);
  return sendOnce(server.portFor(workload.id), prefix + (values?.[0] ?? "") + suffix);
}

/** Sends each kind of request once. Returns the mean size of the responses, by which a round is checked. */
export async function checkResponses(server: CandidateServer, workload: Workload): Promise<number> {
  if (workload.key === "exhausted") await exhaustKey(server);
  let bytes = 0;
  for (const kind of kindsOf(workload)) {
    const response = await send(server, workload, kind);
    const captured = server.responses?.[workload.id]?.[routeOf(kind)];
    const problem =
      server.id === "bare" && captured
        ? differenceFrom(captured, response)
        : problemWith(response, kind, { id: server.id, workload });
    if (problem !== undefined) {
      const received = `${response.status} ${response.body.slice(0, 300)}`;
      throw new WrongResponse(server.id, workload, `${kind}: ${problem}\n${received}`);
    }
    bytes += (response.bytes * (workload.mix[kind] ?? 0)) / 100;
  }
  return bytes;
}

/** Compares the response of a replay server with Petstore's, which it must repeat exactly. */
function differenceFrom({ status, headers, body }: CapturedResponse, response: HttpResponse) {
  const isDifferent = ([name, value]: [string, string]) => response.headers[name.toLowerCase()] !== value;
  const header = Object.entries(headers).find(isDifferent);
  if (header) return `Petstore's header is ${header.join(": ")}`;
  return response.status === status && response.body === body
    ? undefined
    : `Petstore's response is ${status} ${body}`;
}

const PAGE_SIZE = 20;

function problemWith(
  { status, headers, body }: HttpResponse,
  kind: RequestKind,
  { id, workload }: { id: CandidateId; workload: Workload },
): string | undefined {
  const expected = statusOf(workload, kind);
  if (status !== expected) return `the status is not ${expected}`;
  // Peers have a rate limit for keys only; Petstore also has one for addresses.
  const isLimited = !isPeer(id) || workload.key === "unlimited" || workload.key === "exhausted";
  const hasHeader = (name: string) => `x-ratelimit-${name}` in headers || `ratelimit-${name}` in headers;
  if (isLimited && !["limit", "remaining", "reset"].every(hasHeader)) return "rate-limit headers are missing";
  if (workload.rejection !== undefined) return undefined;
  const value: unknown = JSON.parse(body);
  if (routeOf(kind) !== "list") {
    const isPet = typeof value === "object" && value !== null && "id" in value && "name" in value;
    return isPet ? undefined : "the body is not a pet";
  }
  const isPage = Array.isArray(value) && value.length === PAGE_SIZE;
  return isPage ? undefined : `the body is not a list of ${PAGE_SIZE} pets`;
}

/** Petstore bans a key after ten strikes, of which a second has at most one. */
const EXHAUST_TIMEOUT_MS = 30_000;

/** Uses the only request of the key. Petstore then bans the key, as it does under a load of rejected requests. */
async function exhaustKey(server: CandidateServer): Promise<void> {
  const workload = workloadOf("429");
  const deadline = performance.now() + EXHAUST_TIMEOUT_MS;
  for (;;) {
    const { status, body } = await send(server, workload, "list");
    if (status === 429 && (server.id !== "ours" || body.includes("key_banned"))) return;
    if (performance.now() > deadline)
      throw new WrongResponse(server.id, workload, `the key is not rejected: ${status} ${body}`);
    await Bun.sleep(50);
  }
}

/** The tolerance of sizes. The last page is shorter and identifiers grow; error responses differ by far more. */
const SIZE_TOLERANCE = 0.12;
/**
 * The number of accepted requests with the exhausted key. The one-minute window of a peer may end during a round, and
 * then the key has one request again.
 */
const MAX_ACCEPTED = 2;

export function checkRound(
  id: CandidateId,
  workload: Workload,
  { requests, rejected, failed, bytes }: Pick<WrkFigures, "requests" | "rejected" | "failed" | "bytes">,
  expectedBytes: number,
): void {
  const wrong = (problem: string) => new WrongResponse(id, workload, problem);
  if (requests === 0) throw wrong("no responses");
  if (failed > 0) throw wrong(`${failed} connections failed`);
  if (workload.rejection === undefined && rejected > 0)
    throw wrong(`${rejected} of ${requests} were rejected`);
  if (workload.rejection !== undefined && requests - rejected > MAX_ACCEPTED)
    throw wrong(`${requests - rejected} of ${requests} were not rejected`);
  const mean = bytes / requests;
  if (Math.abs(mean / expectedBytes - 1) > SIZE_TOLERANCE)
    throw wrong(`responses of ${Math.round(mean)} bytes instead of ${Math.round(expectedBytes)}`);
}

function highestPetId(database: string): number {
  using connection = new Database(database, { readonly: true });
  const sql = "SELECT seq FROM sqlite_sequence WHERE name = 'pets'";
  return connection.query<{ seq: number }, []>(sql).get()?.seq ?? 0;
}

/** Checks that every acknowledged create is a row. Some creates may have been in progress when the round ended. */
export function checkRows(
  id: CandidateId,
  workload: Workload,
  { rows, requests, connections }: { rows: number; requests: number; connections: number },
): void {
  const share = (workload.mix.create ?? 0) / 100;
  // Creates are spread evenly, so any number of requests contains its share of them, plus or minus one.
  const fewest = Math.floor(requests * share) - 1;
  const most = Math.ceil((requests + connections) * share) + 1;
  if (rows < fewest || rows > most)
    throw new WrongResponse(
      id,
      workload,
      `${rows} rows after ${requests} requests, not ${fewest} to ${most}`,
    );
}
