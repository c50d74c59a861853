import { EXPIRES_SOON_MS } from "../domain/api-keys.ts";
import type { AuditStore } from "../domain/ports/audit.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { UsageHistoryStore } from "../domain/ports/usage-history.ts";
import { workRegularly } from "../runtime/repeat.ts";
import { byServer } from "./attribution.ts";
import type { Log } from "../observe/log.ts";

interface RegularWorkOptions {
  readonly stores: {
    readonly usageHistory: Pick<UsageHistoryStore, "deleteOldUsage">;
    readonly audit: Pick<AuditStore, "deleteAudit">;
    readonly keys: Pick<KeyStore, "announceExpiries">;
  };
  /** The age at which audit entries are deleted; null for never. */
  readonly auditRetentionMs: number | null;
  /** The time by which old data is deleted. */
  readonly retentionNow: () => number;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "event">;
}

/** Deletes old usage and old audit entries, and announces keys that expire soon, some at a time. */
export function startRegularWork(options: RegularWorkOptions) {
  const { stores, auditRetentionMs, retentionNow, clock, log } = options;
  const { usageHistory, audit, keys } = stores;
  const usage = workRegularly(
    () => usageHistory.deleteOldUsage(retentionNow()),
    (error) => log.event("usage-history.delete-failed", { error }),
  );
  const entries = workRegularly(
    async () => auditRetentionMs !== null && audit.deleteAudit(retentionNow() - auditRetentionMs),
    (error) => log.event("audit.delete-failed", { error }),
  );
  const expiries = workRegularly(
    () => keys.announceExpiries(clock.now() + EXPIRES_SOON_MS, byServer(clock)),
    (error) => log.event("key.expiry-not-announced", { error }),
  );
  return {
    async close() {
      await Promise.all([usage.close(), entries.close(), expiries.close()]);
    },
  };
}
