import { formatTime } from "../../text/formatting.ts";
import { EXPIRES_SOON_MS } from "../../domain/api-keys.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { differingSettings, type ServerState } from "../../domain/servers.ts";
import { DEPRECATED_USE_DAYS, type KeyTotals, intervalStart } from "../../domain/usage-history.ts";
import { reuseBriefly } from "../../runtime/event-loop.ts";
import { type AdapterMonitor, LATENCY_BUCKETS, quantilesOf } from "../../observe/request-metrics.ts";
import { formatPolicy } from "../../config/shown-settings.ts";
import type { Fleet, Setting } from "../operations.ts";
import { KeyDirectory } from "./keys.ts";
import type { AdminHandlers, ServerServices } from "./services.ts";

const TOP_KEYS = 20;

export function serverHandlers(services: ServerServices) {
  const { environment, keys, usageHistory, database, limits, metrics, clock } = services;
  const directory = new KeyDirectory(services);

  /**
   * Reading the sums takes 160 ms with 10,000 keys that are used in every hour, and a console asks for them every two
   * seconds.
   */
  const readSums = reuseBriefly(async () => {
    const now = clock.now();
    const day = { by: "hour", since: now - DAY_MS, until: now } as const;
    const totals = await usageHistory.usageByKey({ ...day, limit: TOP_KEYS });
    const deprecatedSince = intervalStart("day", now - DEPRECATED_USE_DAYS * DAY_MS);
    const filter = { expiresBefore: now + EXPIRES_SOON_MS };
    return {
      totals,
      deprecatedKeys: await usageHistory.countDeprecatedUse(deprecatedSince),
      expiringKeys: (await keys.listKeys({ filter, limit: 1, now })).total,
    };
  });

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
        database: { kind: database.name === "SQLite" ? "SQLite" : "PostgreSQL", ...stateOf(database) },
        rateLimiter: { kind: limits.name === "Valkey" ? "Valkey" : "memory", ...stateOf(limits) },
        draining: services.isDraining(),
      };
    },

    async getOverview({ query: { range = "1h" } }) {
      const { totals, deprecatedKeys, expiringKeys } = await readSums();
      const topKeys = await viewTopKeys(totals);
      const banned = await directory.banned(1);
      return {
        range,
        ...metrics.live.read(range),
        bannedKeys: limits.isAvailable ? banned.total : null,
        deprecatedKeys,
        expiringKeys,
        topKeys,
      };
    },

    getSettings: () => ({ items: services.shownSettings.map(asStored) }),
  } satisfies Partial<AdminHandlers>;

  /** Limits and ban rules are those of the database: somebody may have changed what a flag set. */
  function asStored(setting: Setting): Setting {
    const value = formatPolicy(services.policy.current)[setting.name];
    return value === undefined || value === setting.value
      ? setting
      : { ...setting, value, source: "database" };
  }

  async function viewTopKeys(totals: readonly KeyTotals[]) {
    const views = await directory.views(await keys.getKeys(totals.map(({ keyId }) => keyId)));
    return totals.flatMap(({ keyId, ...counts }) => {
      const view = views.find(({ id }) => id === keyId);
      if (view === undefined) return [];
      const { id, name, plan, state, usage, lastUsedAt } = view;
      return [{ id, name, plan, state, usage, ...counts, lastUsedAt }];
    });
  }
}

function stateOf({ isAvailable, latencyMs }: AdapterMonitor) {
  const state = isAvailable ? ("available" as const) : ("unavailable" as const);
  return { state, latencyMs: isAvailable ? (latencyMs ?? null) : null };
}

export function fleetOf(servers: readonly ServerState[]): Fleet {
  const differing = differingSettings(servers);
  return {
    items: servers.map((each) => ({
      id: each.id,
      name: each.name,
      adminUrl: each.adminUrl ?? null,
      version: each.version,
      startedAt: formatTime(each.startedAt),
      seenAt: formatTime(each.seenAt),
      differing: differing.get(each.id) ?? [],
      ...figuresOf([each]),
    })),
    total: figuresOf(servers),
  };
}

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
  for (const [bucket = 0, count = 0] of servers.flatMap(({ latencies }) => latencies)) {
    if (bucket < LATENCY_BUCKETS) counts[bucket] = (counts[bucket] ?? 0) + count;
  }
  return counts;
}
