import {
  openPostgresQuotas,
  openStoredQuotas,
  type Quotas,
  valkeyQuotas,
} from "../../adapters/open-quotas.ts";
import type { MonitoredStores } from "../../adapters/open-stores.ts";
import { describeStorage, type StorageConfig } from "../../config/storage.ts";
import { type Context, Failure } from "../command.ts";
import { errorMessage } from "../error-message.ts";

type QuotaSources = Pick<MonitoredStores, "keys" | "openKeyCounter">;

interface OpenedQuotas {
  readonly rateLimiter: Quotas;
  readonly limiterMonitor: QuotaMonitor;
}

/** Whether the quotas can be read. */
class QuotaMonitor {
  /** Why the quotas cannot be read; undefined if they can. */
  problem: string | undefined;
  #warnedOf: string | undefined;

  constructor(private readonly warn: Context["warn"]) {}

  /** Warns of each problem once: a command that needs no quotas does not ask. */
  get isAvailable(): boolean {
    const { problem } = this;
    if (problem !== undefined && problem !== this.#warnedOf)
      this.warn(`${problem} (used quotas, strikes and bans are unknown)`);
    this.#warnedOf = problem;
    return problem === undefined;
  }
}

/** Opens the quotas in Valkey or PostgreSQL, or those that the server of this data directory stores. */
export async function openQuotas(
  storage: StorageConfig,
  stores: QuotaSources,
  context: Pick<Context, "clock" | "warn">,
): Promise<OpenedQuotas> {
  const { clock, warn } = context;
  const { openKeyCounter } = stores;
  const limiterMonitor = new QuotaMonitor(warn);
  const open = () => {
    if (storage.limitsUrls) return sharedQuotas(storage, stores, { context, monitor: limiterMonitor });
    return openKeyCounter
      ? openPostgresQuotas(openKeyCounter, clock)
      : storedQuotas(openStoredQuotas(storage, stores.keys, clock), limiterMonitor);
  };
  return { rateLimiter: await open(), limiterMonitor };
}

/** Quotas in a file, without which a command shows everything else. */
async function storedQuotas(opening: Promise<Quotas | undefined>, monitor: QuotaMonitor): Promise<Quotas> {
  const failed = (error: unknown) => void (monitor.problem = errorMessage(error));
  const stored = await opening.catch(failed);
  return {
    async quota(subject) {
      try {
        return await stored?.quota(subject);
      } catch (error) {
        return failed(error);
      }
    },
    bannedKeys() {
      try {
        return monitor.problem === undefined ? (stored?.bannedKeys() ?? []) : [];
      } catch (error) {
        failed(error);
        return [];
      }
    },
    unban(subject, agoMs) {
      if (monitor.problem !== undefined) throw new Failure(monitor.problem);
      return stored?.unban(subject, agoMs);
    },
    close: async () => stored?.close(),
  };
}

const PENDING =
  "running servers update it when it is available again; if no server is running, run this command again then";

/** Valkey's own state: a ban lasts there until Valkey itself has received the unban. */
function sharedQuotas(
  storage: StorageConfig,
  stores: QuotaSources,
  { context, monitor }: { readonly context: Pick<Context, "clock" | "warn">; readonly monitor: QuotaMonitor },
): Quotas {
  const { clock, warn } = context;
  // While Valkey is unavailable, what it has counted is unknown.
  const onStateChange = (state: "available" | "unavailable", cause?: unknown) => {
    if (state === "unavailable")
      monitor.problem = `${describeStorage(storage).rateLimits} is unavailable: ${errorMessage(cause)}`;
  };
  const shared = valkeyQuotas(storage, stores, { clock, onStateChange });
  return {
    ...shared,
    async unban(subject, agoMs) {
      await shared.unban(subject, agoMs);
      // Running servers read the unban from the database.
      if (monitor.problem !== undefined) warn(`${monitor.problem}; ${PENDING}`);
    },
  };
}
