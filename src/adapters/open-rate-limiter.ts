import { messageOf } from "../runtime/message-of.ts";
import type { Config } from "../config/config.ts";
import { describeStorage, type StorageConfig } from "../config/storage.ts";
import { type StorageUrls, storageUrlsOf, valkeyOf } from "../config/storage-urls.ts";
import type { KeyCounter, RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { BanRules } from "../domain/ban-rules.ts";
import type { OnBan } from "../domain/rate-limit.ts";
import { byServer } from "../background/attribution.ts";
import type { Log } from "../observe/log.ts";
import { EngineMonitor, type DatabaseMonitor, type LimiterMonitor } from "../observe/engine-monitor.ts";
import { KeyAndAddressLimiter } from "../rate-limit/key-and-address-limiter.ts";
import type { ValkeyRateLimiterOptions } from "../rate-limit/valkey/open-valkey-rate-limiter.ts";
import type { PostgresStores } from "../store/postgres/open-postgres.ts";
import type { MonitoredStores } from "./open-stores.ts";

interface RateLimiterOptions extends Pick<OpenValkeyOptions, "onEarlierBan" | "storageUrls"> {
  readonly clock: Clock;
  readonly testClock: Clock | undefined;
  readonly log: Log;
  readonly ban: () => BanRules;
  readonly onBan: OnBan;
}

export interface OpenedRateLimiter {
  /** `queueLength` is the number of decisions that wait, of a rate limiter with a queue. */
  readonly rateLimiter: RateLimiter & { readonly queueLength?: number };
  /** Monitors the engine that counts for the rate limits. */
  readonly limiterMonitor: LimiterMonitor;
  /** Keys with a ban of the last server in this directory. */
  readonly restoredBans: readonly number[];
}

export function openRateLimiter(
  config: Config,
  { stores, ...options }: RateLimiterOptions & { readonly stores: MonitoredStores },
): Promise<OpenedRateLimiter> {
  if (config.limitsUrls) return valkeyRateLimiter(config, stores, options);
  const { openKeyCounter, database } = stores;
  return openKeyCounter
    ? postgresRateLimiter(openKeyCounter, database, options)
    : memoryRateLimiter(config, options);
}

async function memoryRateLimiter(
  config: Config,
  { clock, log, ban, onBan }: RateLimiterOptions,
): Promise<OpenedRateLimiter> {
  const { MemoryRateLimiter } = await import("../rate-limit/memory/memory-rate-limiter.ts");
  const { openQuotaStore } = await import("../store/sqlite/quota-store.ts");
  const { quotas: file } = config.directory.files;
  const onQuotaStoreError = (error: unknown) => log.event("usage.save-failed", { error });
  const onRescue = () => log.event("usage.rewritten", { file });
  const rateLimiter = new MemoryRateLimiter({
    clock,
    ban,
    onBan,
    quotaStore: openQuotaStore(file, { use: byServer(clock), onRescue, onFailure: onQuotaStoreError }),
    onQuotaStoreError,
    onQuotaStoreRecovery: () => log.event("usage.saved-again"),
  });
  const limiterMonitor = new EngineMonitor("memory");
  return { rateLimiter, limiterMonitor, restoredBans: rateLimiter.restoredBans };
}

async function postgresRateLimiter(
  openKeyCounter: PostgresStores["openKeyCounter"],
  database: DatabaseMonitor,
  { clock, testClock, ban, onBan, onEarlierBan }: RateLimiterOptions,
): Promise<OpenedRateLimiter> {
  const limiterMonitor = new EngineMonitor("PostgreSQL", { uses: database });
  const onResponse = (ms: number) => limiterMonitor.responded(ms);
  const counter = openKeyCounter({ clock, testClock, ban, onBan, onEarlierBan, onResponse });
  return { rateLimiter: await postgresLimiter(counter, { clock, ban }), limiterMonitor, restoredBans: [] };
}

/** Keys are counted in PostgreSQL, and addresses in the memory of this process. */
export async function postgresLimiter(
  counter: KeyCounter,
  { clock, ban }: Pick<RateLimiterOptions, "clock" | "ban">,
): Promise<KeyAndAddressLimiter> {
  const { MemoryRateLimiter } = await import("../rate-limit/memory/memory-rate-limiter.ts");
  const { PostgresKeyLimiter } = await import("../rate-limit/postgres/postgres-key-limiter.ts");
  return new KeyAndAddressLimiter(
    new PostgresKeyLimiter(counter, clock),
    new MemoryRateLimiter({ clock, ban }),
  );
}

async function valkeyRateLimiter(
  config: Config,
  stores: MonitoredStores,
  options: RateLimiterOptions,
): Promise<OpenedRateLimiter> {
  const { log, testClock: _, ...rest } = options;
  const limiterMonitor = new EngineMonitor("Valkey", { spare: stores.database });
  const { limitsTimeoutMs: timeoutMs } = config;
  const address = describeStorage(config).rateLimits;
  const rateLimiter = await openValkey(config, stores, {
    ...rest,
    timeoutMs,
    onResponse: (ms) => limiterMonitor.responded(ms),
    onStateChange(state, reason) {
      limiterMonitor.isAvailable = state === "available";
      const cause = messageOf(reason);
      if (state === "available") log.event("valkey.available");
      else
        log.event(MISCONFIGURED.test(cause) ? "valkey.rejects-commands" : "valkey.unavailable", {
          address,
          cause,
        });
    },
  });
  return { rateLimiter, limiterMonitor, restoredBans: [] };
}

/** Errors that only an operator can fix. */
const MISCONFIGURED = /^(?:NOAUTH|WRONGPASS|NOPERM|MOVED|CROSSSLOT|ERR)\b/;

export type OpenValkeyOptions = Omit<
  ValkeyRateLimiterOptions,
  "urls" | "readServers" | "ca" | "prefix" | "addresses" | "counter"
> & {
  readonly storageUrls?: StorageUrls;
};

/** While Valkey is unavailable, PostgreSQL counts, or on SQLite the only server. */
export async function openValkey(
  storage: StorageConfig,
  { openKeyCounter }: Pick<MonitoredStores, "openKeyCounter">,
  { storageUrls = storageUrlsOf(storage), ...options }: OpenValkeyOptions,
): Promise<KeyAndAddressLimiter> {
  const { MemoryRateLimiter } = await import("../rate-limit/memory/memory-rate-limiter.ts");
  const { openValkeyRateLimiter } = await import("../rate-limit/valkey/open-valkey-rate-limiter.ts");
  const { MemoryKeyCounter } = await import("../rate-limit/memory/memory-key-counter.ts");
  const { clock, ban, onBan, onEarlierBan } = options;
  const counterOptions = { clock, ban, onBan, onEarlierBan };
  return openValkeyRateLimiter({
    ...options,
    counter: openKeyCounter?.(counterOptions) ?? new MemoryKeyCounter(counterOptions),
    ...valkeyOf(storage, storageUrls),
    readServers: () => storageUrls.valkey(),
    addresses: new MemoryRateLimiter({ clock, ban }),
  });
}
