import { formatTime } from "../../text/formatting.ts";
import { differingSettings, nameOfServer, type ServerState } from "../../domain/servers.ts";
import type { EngineMonitor } from "../../observe/engine-monitor.ts";
import { LATENCY_BUCKETS, quantilesOf } from "../../observe/histogram.ts";
import type { ServerList } from "../operations.ts";
import { LATE_SECONDS } from "../operations/servers.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

type ServerViewServices = Pick<
  Services,
  | "environment"
  | "database"
  | "limiterMonitor"
  | "servers"
  | "publicUrl"
  | "address"
  | "startedAt"
  | "isDraining"
>;

interface ServerListServices extends Pick<Services, "clock"> {
  readonly servers: Pick<Services["servers"], "list" | "lost">;
}

export function serverHandlers(services: ServerViewServices) {
  const { environment, database, limiterMonitor, servers } = services;

  return {
    getServer() {
      const { startedAt, publicUrl, address } = services;
      return {
        environment,
        version: servers.self.version,
        runtime: `Bun ${Bun.version}`,
        startedAt: formatTime(startedAt),
        publicUrl,
        instance: { address, pid: process.pid },
        database: {
          kind: database.engine,
          ...stateOf(database),
          waitsForStandby: database.waitsForStandby,
        },
        rateLimiter: {
          kind: limiterMonitor.engine,
          ...stateOf(limiterMonitor),
        },
        draining: services.isDraining(),
      };
    },
  } satisfies Partial<AdminHandlers>;
}

/** The list of servers is read from the database, which commands can do without a server. */
export function serverListHandlers({ servers, clock }: ServerListServices) {
  return {
    async listServers() {
      return serverListOf(await servers.list(), await servers.lost(), clock.now());
    },
  } satisfies Partial<AdminHandlers>;
}

function stateOf({ isAvailable, latencyMs }: EngineMonitor) {
  const state = isAvailable ? ("available" as const) : ("unavailable" as const);
  return { state, latencyMs: isAvailable ? (latencyMs ?? null) : null };
}

/** Lost servers are listed last, with what they reported last. */
function serverListOf(
  servers: readonly ServerState[],
  lost: readonly ServerState[],
  now: number,
): ServerList {
  const differing = differingSettings(servers);
  const viewOf = (each: ServerState, state: ServerList["items"][number]["state"]) => ({
    id: each.id,
    name: nameOfServer(each),
    state,
    adminUrl: each.adminUrl ?? null,
    version: each.version,
    startedAt: formatTime(each.startedAt),
    seenAt: formatTime(each.seenAt),
    differing: differing.get(each.id) ?? [],
    clockAheadMs: each.clockAheadMs ?? null,
    ...figuresOf([each]),
  });
  return {
    items: [
      ...servers.map((each) => viewOf(each, isLate(each, now) ? "unknown" : "up")),
      ...lost.map((each) => viewOf(Object.assign({}, each, NO_RATES), "lost")),
    ],
    total: figuresOf(servers),
  };
}

const NO_RATES = { requestsPerSecond: 0, connections: 0, latencies: [] };

function figuresOf(servers: readonly ServerState[]): ServerList["total"] {
  const sum = (of: (server: ServerState) => number) => servers.reduce((total, each) => total + of(each), 0);
  return {
    requestsPerSecond: sum((each) => each.requestsPerSecond),
    requests: sum((each) => each.requests),
    rejections: sum((each) => each.rejections),
    serverErrors: sum((each) => each.serverErrors),
    connections: sum((each) => each.connections),
    ...quantilesOf(latenciesOf(servers)),
  };
}

function latenciesOf(servers: readonly Pick<ServerState, "latencies">[]): Float64Array {
  const counts = new Float64Array(LATENCY_BUCKETS);
  for (const [bucket = 0, count = 0] of servers.flatMap(({ latencies }) => latencies)) {
    if (bucket < LATENCY_BUCKETS) counts[bucket] = (counts[bucket] ?? 0) + count;
  }
  return counts;
}

/** Whether a server was not heard of lately. In an outage of the database no other one is. */
function isLate({ seenAt }: ServerState, now: number): boolean {
  return now - seenAt > LATE_SECONDS * 1_000;
}
