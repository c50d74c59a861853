import { openPostgresQuotas, openStoredQuotas, type Quotas } from "../../adapters/open-quotas.ts";
import type { MonitoredStores } from "../../adapters/open-stores.ts";
import type { StorageConfig } from "../../config/storage.ts";
import { type Context, Failure } from "../command.ts";
import { errorMessage } from "../error-message.ts";

type QuotaSources = Pick<MonitoredStores, "keys" | "openKeyLimiter">;

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

/** Opens the quotas in PostgreSQL, or those that the server of this data directory stores. */
export async function openQuotas(
  storage: StorageConfig,
  stores: QuotaSources,
  context: Pick<Context, "clock" | "warn">,
): Promise<OpenedQuotas> {
  const { clock, warn } = context;
  const { openKeyLimiter } = stores;
  const limiterMonitor = new QuotaMonitor(warn);
  const rateLimiter = openKeyLimiter
    ? openPostgresQuotas(openKeyLimiter, clock)
    : await storedQuotas(openStoredQuotas(storage, stores.keys, clock), limiterMonitor);
  return { rateLimiter, limiterMonitor };
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
