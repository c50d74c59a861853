import { reusedSums } from "../../observe/usage-history.ts";
import { formatTime } from "../../api/formatting.ts";
import type { Environment } from "../../domain/api-keys.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { DEPRECATED_USE_DAYS, startOf } from "../../domain/usage-history.ts";
import { yieldToEventLoop } from "../../event-loop.ts";
import type { LiveSeries } from "../../observe/live-series.ts";
import type { AdapterMonitor } from "../../observe/request-metrics.ts";
import type { AdminHandlers } from "../admin-app.ts";
import type { Setting } from "../operations.ts";
import type { KeyDirectory } from "./keys.ts";
import type { OperatorServices } from "./services.ts";

/** What does not change while the server runs. */
export interface ServerFacts {
  readonly environment: Environment;
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly publicUrl: string;
  /** Host and port. */
  readonly address: string;
  readonly settings: readonly Setting[];
}

type ShownMonitor = Pick<AdapterMonitor, "name" | "isAvailable" | "latencyMs">;

interface ServerHandlerOptions extends Pick<OperatorServices, "keys" | "usageHistory" | "clock"> {
  readonly facts: ServerFacts;
  readonly directory: KeyDirectory;
  readonly database: ShownMonitor;
  readonly limits: ShownMonitor;
  readonly live: Pick<LiveSeries, "read">;
  readonly isDraining: () => boolean;
}

const TOP_KEYS = 20;

export function serverHandlers(options: ServerHandlerOptions) {
  const { facts, keys, directory, database, limits, live, clock } = options;
  const sums = reusedSums(options.usageHistory);

  return {
    getServer() {
      const { environment, version, startedAt, publicUrl, address } = facts;
      return {
        environment,
        version,
        runtime: `Bun ${Bun.version}`,
        startedAt: formatTime(startedAt),
        publicUrl,
        instance: { address, pid: process.pid },
        database: { kind: database.name === "SQLite" ? "SQLite" : "PostgreSQL", ...stateOf(database) },
        rateLimiter: { kind: limits.name === "Valkey" ? "Valkey" : "memory", ...stateOf(limits) },
        draining: options.isDraining(),
      };
    },

    async getOverview({ query: { range = "1h" } }) {
      const deprecatedSince = startOf("day", clock.now() - DEPRECATED_USE_DAYS * DAY_MS);
      // One after the other: each gives way to requests after 2 ms, and together they would take a multiple of that.
      const topKeys = await readTopKeys();
      const banned = await directory.banned(1);
      const deprecatedKeys = await sums.countDeprecatedUse(deprecatedSince);
      await yieldToEventLoop();
      return {
        range,
        ...live.read(range),
        bannedKeys: limits.isAvailable ? banned.total : null,
        deprecatedKeys,
        topKeys,
      };
    },

    getSettings: () => ({ items: facts.settings }),
  } satisfies Partial<AdminHandlers>;

  async function readTopKeys() {
    const now = clock.now();
    const totals = await sums.usageByKey({
      by: "hour",
      since: now - DAY_MS,
      until: now,
      limit: TOP_KEYS,
    });
    const views = await directory.views(await keys.getKeys(totals.map(({ keyId }) => keyId)));
    return totals.flatMap(({ keyId, ...counts }) => {
      const view = views.find(({ id }) => id === keyId);
      if (view === undefined) return [];
      const { id, name, plan, state, usage, lastUsedAt } = view;
      return [{ id, name, plan, state, usage, ...counts, lastUsedAt }];
    });
  }
}

function stateOf({ isAvailable, latencyMs }: ShownMonitor) {
  const state = isAvailable ? ("available" as const) : ("unavailable" as const);
  return { state, latencyMs: isAvailable ? (latencyMs ?? null) : null };
}
