import { hostname } from "node:os";
import { followDatabaseUrl } from "../config/database-url.ts";
import type { DataDirectory } from "../data-directory.ts";
import type { DataLocation } from "../data-location.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { Policy, PolicyInEffect } from "../domain/policy.ts";
import { BanRecorder } from "../background/ban-recorder.ts";
import { ClockWatch } from "../background/clock-watch.ts";
import { byServer } from "../background/attribution.ts";
import { logAudit, reportSettingFiles } from "../observe/event-reports.ts";
import type { Log } from "../observe/log.ts";
import { RetentionClock } from "../store/retention-clock.ts";
import type { Migrator } from "../store/sql/migrations.ts";
import { type OpenedRateLimiter, openRateLimiter } from "./open-rate-limiter.ts";
import { type MonitoredStores, openStores, prepareDirectory } from "./open-stores.ts";

export interface Adapters extends MonitoredStores, Omit<OpenedRateLimiter, "restoredBans"> {
  /** Records the bans of the rate limiter. */
  readonly bans: BanRecorder;
  readonly clockWatch: ClockWatch;
  /** The policy that this server applies. `applyPolicy` replaces it. */
  readonly policy: PolicyInEffect;
  readonly applyPolicy: (stored: Policy) => void;
  /** Returns the time by which old data is deleted. */
  readonly retentionNow: () => number;
  /** Resolves when the server has to stop, with the reason. */
  readonly failed: Promise<Error>;
}

/**
 * Imports adapters when they are used, so that a start on SQLite does not load the code of PostgreSQL. `testClock`
 * replaces the clock of PostgreSQL for the rate limits.
 */
export async function openAdapters(
  location: DataLocation,
  clock: Clock,
  log: Log,
  testClock?: Clock,
): Promise<Adapters> {
  // Adapters close in reverse order, also after one of them could not close.
  const opened = new AsyncDisposableStack();
  try {
    const { directory, postgres } = location;
    if (location.needsDirectory) prepareServerDirectory(directory, log);
    if (postgres === undefined) opened.defer((await lockDirectory(directory)).release);
    const onDoubt = () => log.event("clock.doubted");
    const retention = new RetentionClock(clock, onDoubt, () => log.event("clock.trusted"));
    const { now: retentionNow } = retention;
    const { promise: failed, resolve: onLost } = Promise.withResolvers<Error>();
    const databaseUrl = postgres && followDatabaseUrl(postgres, reportSettingFiles(log));
    opened.defer(() => databaseUrl?.close());
    const use: Migrator = {
      ...byServer(clock),
      onMigrated(entry) {
        const { before, after } = entry;
        log.event("database.migrated", { from: before?.["schemaVersion"], to: after?.["schemaVersion"] });
        logAudit(log)(entry);
      },
    };
    const stores = await openStores(location, {
      log,
      retentionNow,
      onLost,
      readUrl: databaseUrl && (() => databaseUrl.current),
      use,
    });
    opened.defer(() => stores.close());
    await retention.start(stores.storedValues);
    opened.defer(() => retention.stop());
    const clockWatch = new ClockWatch({ storedValues: stores.storedValues, clock, log });
    opened.defer(() => clockWatch.close());
    // The rate limiter bans by the policy in effect and reports its bans, so it opens after both.
    const bans = new BanRecorder({ audit: stores.audit, keys: stores.keys, log, server: hostname() });
    opened.defer(() => bans.close());
    const policy = { current: await stores.policies.readPolicy() };
    const ban = () => policy.current.ban;
    const { limiterMonitor, rateLimiter, restoredBans } = openRateLimiter(directory, {
      clock,
      log,
      ban,
      bans,
      stores,
      testClock,
    });
    opened.defer(() => rateLimiter.close());
    for (const id of restoredBans) await applyMissedUnban(id, { rateLimiter, keys: stores.keys, clock });
    const close = () => opened.disposeAsync();
    const applyPolicy = (stored: Policy) => {
      if (Bun.deepEquals(stored, policy.current)) return;
      policy.current = stored;
      log.event("limits.changed");
    };
    const limits = { policy, applyPolicy, rateLimiter, bans, limiterMonitor };
    return { ...stores, ...limits, clockWatch, retentionNow, failed, close };
  } catch (error) {
    await opened
      .disposeAsync()
      .catch((closeError: unknown) => log.event("server.close-failed", { error: closeError }));
    throw error;
  }
}

/** Applies an unban that the last server missed before it stopped. A ban that began after the unban stays. */
async function applyMissedUnban(
  id: number,
  { rateLimiter, keys, clock }: { rateLimiter: RateLimiter; keys: KeyStore; clock: Clock },
): Promise<void> {
  const unbannedAt = (await keys.getKey(id))?.unbannedAt;
  if (unbannedAt === undefined) return;
  await rateLimiter.unban({ kind: "key", id }, Math.max(0, clock.now() - unbannedAt));
}

function prepareServerDirectory(directory: DataDirectory, log: Log): void {
  prepareDirectory(directory, log);
  const mode = directory.modeIfOpenToOthers();
  if (mode !== undefined) log.event("data-directory.open-to-others", { directory: directory.path, mode });
}

/** A directory has one server. Two would each apply the limits in full and miss the other's writes. */
async function lockDirectory(directory: DataDirectory) {
  const lock = await directory.lock();
  if (!lock) throw new Error(`another server is already running on ${directory.name}`);
  return lock;
}
