import { hostname } from "node:os";
import type { DataDirectory } from "../data-directory.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { BanRules } from "../domain/ban-rules.ts";
import type { BanRecorder } from "../background/ban-recorder.ts";
import { byServer } from "../background/attribution.ts";
import type { Log } from "../observe/log.ts";
import { EngineMonitor, type LimiterMonitor } from "../observe/engine-monitor.ts";
import { KeyAndAddressLimiter } from "../rate-limit/key-and-address-limiter.ts";
import { MemoryRateLimiter } from "../rate-limit/memory-rate-limiter.ts";
import { openQuotaStore } from "../store/sqlite/quota-store.ts";
import type { MonitoredStores } from "./open-stores.ts";

interface RateLimiterOptions {
  readonly stores: MonitoredStores;
  readonly clock: Clock;
  readonly testClock: Clock | undefined;
  readonly log: Log;
  readonly ban: () => BanRules;
  readonly bans: Pick<BanRecorder, "record" | "report">;
}

export interface OpenedRateLimiter {
  /** `queueLength` is the number of decisions that wait, of a rate limiter with a queue. */
  readonly rateLimiter: RateLimiter;
  /** Monitors the engine that counts for the rate limits. */
  readonly limiterMonitor: LimiterMonitor;
  /** Keys with a ban of the last server in this directory. */
  readonly restoredBans: readonly number[];
}

/** On PostgreSQL, keys are counted there, and addresses in the memory of this process. */
export function openRateLimiter(
  directory: DataDirectory,
  { stores, clock, testClock, log, ban, bans }: RateLimiterOptions,
): OpenedRateLimiter {
  const { openKeyLimiter, database } = stores;
  if (openKeyLimiter) {
    const limiterMonitor = new EngineMonitor("PostgreSQL", database);
    const onResponse = (ms: number) => limiterMonitor.responded(ms);
    const keys = openKeyLimiter({
      clock,
      testClock,
      ban,
      onBan: bans.report,
      server: hostname(),
      onResponse,
    });
    const rateLimiter = new KeyAndAddressLimiter(keys, new MemoryRateLimiter({ clock, ban }));
    return { rateLimiter, limiterMonitor, restoredBans: [] };
  }
  const { quotas: file } = directory.files;
  const onQuotaStoreError = (error: unknown) => log.event("quotas.save-failed", { error });
  const onRescue = () => log.event("quotas.rewritten", { file });
  const rateLimiter = new MemoryRateLimiter({
    clock,
    ban,
    onBan: bans.record,
    quotaStore: openQuotaStore(file, { use: byServer(clock), onRescue, onFailure: onQuotaStoreError }),
    onQuotaStoreError,
    onQuotaStoreRecovery: () => log.event("quotas.saved-again"),
  });
  const limiterMonitor = new EngineMonitor("memory");
  return { rateLimiter, limiterMonitor, restoredBans: rateLimiter.restoredBans };
}
