import { EXPIRES_SOON_MS } from "../domain/api-keys.ts";
import type { PolicyInEffect } from "../domain/policy.ts";
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
  readonly policy: PolicyInEffect;
  /** The time by which old data is deleted. */
  readonly retentionNow: () => number;
  /** Whether the policy that this server is started with is stored. */
  readonly isPolicyStored: () => boolean;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "event">;
}

/** Deletes old usage and old audit entries, and announces keys that expire soon, some at a time. */
export function startRegularWork(options: RegularWorkOptions) {
  const { stores, policy, retentionNow, isPolicyStored, clock, log } = options;
  const { usageHistory, audit, keys } = stores;
  const usage = workRegularly(
    () => usageHistory.deleteOldUsage(retentionNow()),
    (error) => log.event("usage-history.delete-failed", { error }),
  );
  const entries = workRegularly(
    async () => {
      const { "audit-retention": retentionMs } = policy.current.sharedValues;
      // A server that starts with a longer time has deleted nothing before it is stored.
      if (!isPolicyStored() || retentionMs === null) return false;
      return audit.deleteAudit(retentionNow() - retentionMs);
    },
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
