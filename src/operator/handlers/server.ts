import { formatTime } from "../../text/formatting.ts";
import { EXPIRES_SOON_MS } from "../../domain/api-keys.ts";
import { CLOSE_TO_LIMIT_PERCENT } from "../../domain/constants.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { differingSettings, isLate, nameOfServer, type ServerState } from "../../domain/servers.ts";
import {
  DEPRECATED_USE_DAYS,
  intervalStart,
  type KeyTotals,
  requestsOf,
  sumOfRequests,
} from "../../domain/usage-history.ts";
import { reuseBriefly } from "../../runtime/event-loop.ts";
import { type AdapterMonitor } from "../../observe/request-metrics.ts";
import { LATENCY_BUCKETS, quantilesOf } from "../../observe/histogram.ts";
import { formatPolicy } from "../../config/shown-settings.ts";
import type { Fleet, ServerSeries, Setting } from "../operations.ts";
import { KeyViews } from "./key-views.ts";
import { askOthers } from "./other-servers.ts";
import { combinedSeries } from "./series.ts";
import type { AdminHandlers, ServerServices } from "./services.ts";

const TOP_KEYS = 20;

export function serverHandlers(services: ServerServices) {
  const { environment, keys, usageHistory, database, limiterMonitor, metrics, clock, servers } = services;
  const keyViews = new KeyViews(services);
  const listener: Readonly<Record<string, string>> = { "admin-address": new URL(services.url).host };

  /**
   * Reading the sums takes 160 ms with 10,000 keys that are used in every hour, and a console asks for them every two
   * seconds.
   */
  const readSums = reuseBriefly(async () => {
    const now = clock.now();
    const day = { by: "hour", since: now - DAY_MS, until: now } as const;
    const totals = await usageHistory.usageByKey(day);
    const deprecatedSince = intervalStart("day", now - DEPRECATED_USE_DAYS * DAY_MS);
    const filter = { expiresBefore: now + EXPIRES_SOON_MS };
    const windows = await keyViews.windowsOf(totals);
    const ids = windows.filter(({ percent }) => percent >= CLOSE_TO_LIMIT_PERCENT).map(({ id }) => id);
    const close = await keyViews.list({ filter: { state: "active", ids }, limit: 1 });
    const [first = null] = close.items;
    return {
      totals: totals.slice(0, TOP_KEYS),
      keyRequests: requestsOf(sumOfRequests(totals)),
      deprecatedKeys: await usageHistory.countDeprecatedUse(deprecatedSince),
      expiringKeys: (await keys.listKeys({ filter, limit: 1, now })).total,
      closeKeys: { total: close.total, first: first && { id: first.id, name: first.name } },
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
        rateLimiter: {
          kind: limiterMonitor.name === "Valkey" ? "Valkey" : "memory",
          ...stateOf(limiterMonitor),
        },
        draining: services.isDraining(),
      };
    },

    async getOverview({ query: { range = "1h" } }) {
      const { totals, ...counts } = await readSums();
      const topKeys = await viewTopKeys(totals);
      const banned = await keyViews.banned(1);
      return {
        range,
        ...(await readSeries(range)),
        bannedKeys: limiterMonitor.isAvailable ? banned.total : null,
        ...counts,
        topKeys,
      };
    },

    getSeries: ({ query: { range = "1h" } }) => ({
      range,
      ...metrics.live.read(range),
      server: servers.self.id,
    }),

    getSettings: () => ({ items: services.shownSettings.map(inEffect) }),
  } satisfies Partial<AdminHandlers>;

  /**
   * Limits and ban rules are those of the database: somebody may have changed what a flag set. The machine decides the
   * number of connections, and the system a port of 0.
   */
  function inEffect(setting: Setting): Setting {
    const { name, value: given, source } = setting;
    const stored = formatPolicy(services.policy.current)[name];
    const value = stored ?? services.valuesInEffect[name] ?? listener[name] ?? given;
    if (value === given) return setting;
    if (stored !== undefined) return { ...setting, value, source: "database" };
    return { ...setting, value, ...(source !== "default" && given !== null && { given }) };
  }

  /** The series of all servers, and the servers whose series are missing. */
  async function readSeries(range: ServerSeries["range"]) {
    const asked = await askOthers(
      servers,
      (server) => services.askForSeries(server, range),
      ({ server }) => server,
    );
    const others = asked.flatMap(({ body }) => body ?? []);
    const missing = asked.flatMap(({ server, problem }) =>
      problem === null ? [] : [{ name: nameOfServer(server), problem }],
    );
    return { ...combinedSeries(metrics.live.read(range), others), missing };
  }

  async function viewTopKeys(totals: readonly KeyTotals[]) {
    const views = await keyViews.views(await keys.getKeys(totals.map(({ keyId }) => keyId)));
    return totals.flatMap(({ keyId, admitted, limited, banned, errors }) => {
      const view = views.find(({ id }) => id === keyId);
      if (view === undefined) return [];
      const { id, name, plan, state, usage, lastUsedAt } = view;
      return [{ id, name, plan, state, usage, admitted, limited, banned, errors, lastUsedAt }];
    });
  }
}

function stateOf({ isAvailable, latencyMs }: AdapterMonitor) {
  const state = isAvailable ? ("available" as const) : ("unavailable" as const);
  return { state, latencyMs: isAvailable ? (latencyMs ?? null) : null };
}

/** Lost servers are listed last, with what they reported last. */
export function fleetOf(servers: readonly ServerState[], lost: readonly ServerState[], now: number): Fleet {
  const differing = differingSettings(servers);
  const viewOf = (each: ServerState, state: Fleet["items"][number]["state"]) => ({
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
