import { existsSync } from "node:fs";
import { openValkey } from "../../adapters.ts";
import { describeStorage, pathsOf, type StorageConfig } from "../../config/config.ts";
import { SETTINGS } from "../../config/options.ts";
import { Unavailable } from "../../contract/errors.ts";
import type { ApiKey } from "../../domain/api-keys.ts";
import type { KeyUsage, UsageUnavailable } from "../../domain/key-view.ts";
import type { Clock, RateLimiter, UsageStore } from "../../domain/ports.ts";
import { DEFAULT_BAN, LONGEST_BAN_MS, unban, type Usage } from "../../domain/rate-limit.ts";
import { errorMessage } from "../error-message.ts";

export function usageWarning({ reason }: UsageUnavailable): string {
  return `${reason} (usage, strikes and bans are unknown)`;
}

export async function readUsage(
  storage: StorageConfig,
  keys: readonly ApiKey[],
  clock: Clock,
): Promise<KeyUsage | UsageUnavailable> {
  if (keys.length === 0) return new Map();
  return storage.limitsUrls === undefined
    ? readFromUsageStore(storage, keys)
    : readFromValkey(storage, keys, clock);
}

/** A running server writes its usage every second, so this is at most a second old. */
async function readFromUsageStore(
  storage: StorageConfig,
  keys: readonly ApiKey[],
): Promise<KeyUsage | UsageUnavailable> {
  const usages = new Map<number, Usage>();
  try {
    await withUsageStore(storage, (usageStore) => {
      for (const { id, unbannedAt } of keys) {
        const usage = usageStore.find({ kind: "key", id });
        // A running server may have written the ban again before it saw the unban.
        if (usage && unbannedAt !== undefined) unban(usage, unbannedAt);
        if (usage) usages.set(id, usage);
      }
    });
    return usages;
  } catch (error) {
    return { reason: errorMessage(error) };
  }
}

/** Valkey's own state: a ban lasts there until Valkey itself has received the unban. */
async function readFromValkey(
  storage: StorageConfig,
  keys: readonly ApiKey[],
  clock: Clock,
): Promise<KeyUsage | UsageUnavailable> {
  const usages = new Map<number, Usage>();
  const unavailable = await withValkey(storage, clock, async (rateLimiter) => {
    for (const { id } of keys) {
      const usage = await rateLimiter.usage({ kind: "key", id });
      if (usage) usages.set(id, usage);
    }
  });
  return unavailable ?? usages;
}

/**
 * Ends a ban in the usage store or in Valkey. Running servers also unban the key when they see the change in the key
 * store; this is for the server that starts next.
 */
export async function unbanKey(
  storage: StorageConfig,
  id: number,
  clock: Clock,
): Promise<UsageUnavailable | undefined> {
  if (storage.limitsUrls !== undefined) {
    return withValkey(storage, clock, async (rateLimiter) => rateLimiter.unban({ kind: "key", id }, 0));
  }
  await withUsageStore(storage, (usageStore) => {
    const usage = usageStore.find({ kind: "key", id });
    if (usage === undefined) return;
    unban(usage, Infinity);
    usageStore.save([[{ kind: "key", id }, usage]]);
  }).catch((error: unknown) => {
    // The usage store is busy, so a server is running, and it unbans the key itself.
    if (!(error instanceof Unavailable)) throw error;
  });
  return undefined;
}

async function withUsageStore(storage: StorageConfig, work: (usageStore: UsageStore) => void): Promise<void> {
  const { usageStore: path } = pathsOf(storage);
  if (!existsSync(path)) return;
  const { openUsageStore } = await import("../../store/sqlite/usage-store.ts");
  const usageStore = openUsageStore(path);
  try {
    work(usageStore);
  } finally {
    usageStore.close();
  }
}

/** The rules of the servers may be others; these make no ban shorter. */
const BAN_RULES = { ...DEFAULT_BAN, maxLengthMs: LONGEST_BAN_MS };

/** While Valkey is unavailable the rate limiter counts in this process, so what it returned is worthless. */
async function withValkey(
  storage: StorageConfig,
  clock: Clock,
  work: (rateLimiter: RateLimiter) => Promise<void>,
): Promise<UsageUnavailable | undefined> {
  const failures: UsageUnavailable[] = [];
  const { environment, limitsUrls: urls = [], limitsCaFile: caFile } = storage;
  const timeoutMs = SETTINGS["limits-timeout"].default;
  const rateLimiter = await openValkey(
    { environment, urls, caFile, ban: BAN_RULES, clock, timeoutMs },
    (state, cause) => {
      if (state === "unavailable") {
        failures.push({
          reason: `${describeStorage(storage).rateLimits} is unavailable: ${errorMessage(cause)}`,
        });
      }
    },
  );
  try {
    if (failures.length === 0) await work(rateLimiter);
  } finally {
    await rateLimiter.close();
  }
  return failures[0];
}
