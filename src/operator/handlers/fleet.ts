import { formatTime } from "../../api/formatting.ts";
import type { ServerState } from "../../domain/servers.ts";
import { LATENCY_BUCKETS, quantilesOf } from "../../observe/request-metrics.ts";
import type { AdminHandlers } from "../admin-app.ts";
import type { Fleet } from "../operations.ts";
import type { OperatorServices } from "./services.ts";

export function fleetHandlers({ servers }: Pick<OperatorServices, "servers">) {
  return {
    listServers: async () => fleetOf(await servers.list()),
  } satisfies Partial<AdminHandlers>;
}

function fleetOf(servers: readonly ServerState[]): Fleet {
  return {
    items: servers.map((each) => ({
      id: each.id,
      name: each.name,
      adminUrl: each.adminUrl ?? null,
      version: each.version,
      startedAt: formatTime(each.startedAt),
      seenAt: formatTime(each.seenAt),
      ...figuresOf([each]),
    })),
    total: figuresOf(servers),
  };
}

/** Of the servers together. */
function figuresOf(servers: readonly ServerState[]): Fleet["total"] {
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
  for (const [bucket, count] of servers.flatMap(({ latencies }) => latencies)) {
    if (bucket < LATENCY_BUCKETS) counts[bucket] = (counts[bucket] ?? 0) + count;
  }
  return counts;
}
