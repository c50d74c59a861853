/* Opens what a command reads and changes of quotas, which servers may count meanwhile. */

import { existsSync } from "node:fs";
import { hostname } from "node:os";
import type { StorageConfig } from "../config/storage.ts";
import { COMMAND_BAN_RULES } from "../domain/ban-rules.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import { KeyAndAddressLimiter } from "../rate-limit/key-and-address-limiter.ts";
import { MemoryRateLimiter } from "../rate-limit/memory-rate-limiter.ts";
import type { PostgresStores } from "../store/postgres/open-postgres.ts";

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
  const { StoredQuotas } = await import("../rate-limit/stored-quotas.ts");
  return new StoredQuotas(openQuotaStore(path), keys, clock);
}

/** Opens the quotas that servers count in PostgreSQL. */
export function openPostgresQuotas(openKeyLimiter: PostgresStores["openKeyLimiter"], clock: Clock): Quotas {
  return new KeyAndAddressLimiter(
    openKeyLimiter({ clock, ban, server: hostname() }),
    new MemoryRateLimiter({ clock, ban }),
  );
}
