/* Opens what a command reads and changes of quotas, which servers may count meanwhile. */

import { existsSync } from "node:fs";
import type { StorageConfig } from "../config/storage.ts";
import { SETTINGS } from "../config/options.ts";
import { COMMAND_BAN_RULES } from "../domain/ban-rules.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { PostgresStores } from "../store/postgres/open-postgres.ts";
import type { MonitoredStores } from "./open-stores.ts";
import type { OpenValkeyOptions } from "./open-rate-limiter.ts";

export type Quotas = Pick<RateLimiter, "quota" | "bannedKeys" | "unban" | "close">;

const ban = () => COMMAND_BAN_RULES;

/** Opens the quotas that the server of this data directory stores; undefined if it has stored none. */
export async function openStoredQuotas(
  { directory }: StorageConfig,
  keys: Pick<KeyStore, "getKey">,
  clock: Clock,
): Promise<Quotas | undefined> {
  const { quotas: path } = directory.files;
  if (!existsSync(path)) return undefined;
  const { openQuotaStore } = await import("../store/sqlite/quota-store.ts");
  const { StoredQuotas } = await import("../rate-limit/memory/stored-quotas.ts");
  return new StoredQuotas(openQuotaStore(path), keys, clock);
}

/** Opens the quotas that servers count in PostgreSQL. */
export async function openPostgresQuotas(
  openKeyCounter: PostgresStores["openKeyCounter"],
  clock: Clock,
): Promise<Quotas> {
  const { postgresLimiter } = await import("./open-rate-limiter.ts");
  return postgresLimiter(openKeyCounter({ clock, ban }), { clock, ban });
}

/** The quotas that servers count in Valkey. The first call opens them, because most commands make none. */
export function valkeyQuotas(
  storage: StorageConfig,
  stores: Pick<MonitoredStores, "openKeyCounter">,
  options: Pick<OpenValkeyOptions, "clock" | "onStateChange">,
): Quotas {
  let opening: Promise<Quotas> | undefined;
  const open = async () => {
    const { openValkey } = await import("./open-rate-limiter.ts");
    return openValkey(storage, stores, { ...options, ban, timeoutMs: SETTINGS["limits-timeout"].default });
  };
  const opened = () => (opening ??= open());
  return {
    quota: async (subject) => (await opened()).quota(subject),
    bannedKeys: () => undefined,
    unban: async (subject, agoMs) => (await opened()).unban(subject, agoMs),
    // The call that needed the rate limiter has thrown the error of its opening.
    close: async () => (await opening?.catch(() => undefined))?.close(),
  };
}
