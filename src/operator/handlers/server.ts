import { formatTime } from "../../text/formatting.ts";
import { differingSettings, nameOfServer, type ServerState } from "../../domain/servers.ts";
import type { AdapterMonitor } from "../../observe/adapter-monitor.ts";
import { LATENCY_BUCKETS, quantilesOf } from "../../observe/histogram.ts";
import { formatPolicy } from "../../config/policy-options.ts";
import type { ServerList, Setting } from "../operations.ts";
import { ownState } from "./other-servers.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";
import { LATE_SECONDS } from "../server-schemas.ts";

type ServerServices = Pick<
  Services,
  | "environment"
  | "database"
  | "limiterMonitor"
  | "metrics"
  | "servers"
  | "policy"
  | "publicUrl"
  | "address"
  | "startedAt"
  | "shownSettings"
  | "valuesInEffect"
  | "isDraining"
>;

export function serverHandlers(services: ServerServices) {
  const { environment, database, limiterMonitor, metrics, servers } = services;

  return {
    getServer() {
      const { startedAt, publicUrl, address } = services;
      return {
        environment,
        version: services.servers.self.version,
        runtime: `Bun ${Bun.version}`,
        startedAt: formatTime(startedAt),
        publicUrl,
        instance: { address, pid: process.pid },
        database: {
          kind: database.name === "SQLite" ? "SQLite" : "PostgreSQL",
          ...stateOf(database),
          waitsForStandby: database.waitsForStandby,
        },
        rateLimiter: {
          kind: limiterMonitor.name === "SQLite" ? "memory" : limiterMonitor.name,
          ...stateOf(limiterMonitor),
        },
        draining: services.isDraining(),
      };
    },

    getSeries: ({ query: { range = "1h" } }) => ({
      range,
      ...metrics.live.read(range),
      server: servers.self.id,
    }),

    async getSettings() {
      const { adminUrl } = await ownState(servers);
      const listener = adminUrl ? { "admin-address": new URL(adminUrl).host } : {};
      const values = { ...services.valuesInEffect, ...listener };
      return { items: services.shownSettings.map((setting) => inEffect(setting, values)) };
    },
  } satisfies Partial<AdminHandlers>;

  /**
   * Limits and ban rules are those of the database: somebody may have changed what a flag set. The machine decides the
   * number of connections, and the system a port of 0.
   */
  function inEffect(setting: Setting, values: Readonly<Record<string, string>>): Setting {
    const { name, value: given, source } = setting;
    const stored = formatPolicy(services.policy.current)[name];
    const value = stored ?? values[name] ?? given;
    if (value === given) return setting;
    if (stored !== undefined) return { ...setting, value, source: "database" };
    return { ...setting, value, ...(source !== "default" && given !== null && { given }) };
  }
}

function stateOf({ isAvailable, latencyMs }: AdapterMonitor) {
  const state = isAvailable ? ("available" as const) : ("unavailable" as const);
  return { state, latencyMs: isAvailable ? (latencyMs ?? null) : null };
}

/** Lost servers are listed last, with what they reported last. */
export function serverListOf(
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
