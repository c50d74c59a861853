/* Opens what a command reads and changes of quotas, which servers may count meanwhile. */

import { existsSync } from "node:fs";
import { hostname } from "node:os";
import type { DataDirectory } from "../data-directory.ts";
import { COMMAND_BAN_RULES } from "../domain/ban-rules.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { KeySubject } from "../domain/rate-limit.ts";
import { StoredQuotas, type StoredQuotasOptions } from "../rate-limit/stored-quotas.ts";
import type { MonitoredStores } from "./open-stores.ts";

interface OpenedQuotas {
  readonly rateLimiter: Pick<RateLimiter<KeySubject>, "quota" | "bannedKeys" | "unban" | "close">;
  /** Whether the quotas can be read. */
  readonly limiterMonitor: { readonly isAvailable: boolean };
}

/** Opens the quotas in PostgreSQL, or those that the server of this data directory stores. */
export async function openQuotas(
  directory: DataDirectory,
  { keys, openKeyLimiter }: Pick<MonitoredStores, "keys" | "openKeyLimiter">,
  { clock, onProblem }: Pick<StoredQuotasOptions, "onProblem"> & { readonly clock: Clock },
): Promise<OpenedQuotas> {
  if (openKeyLimiter) {
    const rateLimiter = openKeyLimiter({ clock, ban: () => COMMAND_BAN_RULES, server: hostname() });
    return { rateLimiter, limiterMonitor: { isAvailable: true } };
  }
  const { openQuotaStore } = await import("../store/sqlite/quota-store.ts");
  const { quotas: path } = directory.files;
  const open = () => (existsSync(path) ? openQuotaStore(path) : undefined);
  const stored = new StoredQuotas({ open, keys, clock, onProblem });
  return { rateLimiter: stored, limiterMonitor: stored };
}
