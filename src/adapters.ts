import packageJson from "../package.json" with { type: "json" };
import { makeTemporaryDirectory, removeDirectory } from "./runtime/own-files.ts";
import { hostname } from "node:os";
import { messageOf } from "./runtime/message-of.ts";
import {
  type Config,
  describeStorage,
  followStorageUrls,
  type StorageConfig,
  type StorageUrls,
  storageUrlsOf,
  valkeyOf,
} from "./config/config.ts";
import { DataDirectory } from "./data-directory.ts";
import type { StateChange, DatabaseStores } from "./domain/ports/stores.ts";
import type { RateLimiter } from "./domain/ports/rate-limiter.ts";
import type { KeyStore } from "./domain/ports/keys.ts";
import type { Clock } from "./domain/ports/clock.ts";
import type { Policy, PolicyInEffect } from "./domain/policy.ts";
import type { BanRules, OnBan } from "./domain/rate-limit.ts";
import { ActivityCollector } from "./domain/servers.ts";
import { BanRecorder } from "./observe/ban-recorder.ts";
import { byServer } from "./observe/attribution.ts";
import { logAudit, reportSettingFiles } from "./observe/event-reports.ts";
import type { Log } from "./observe/log.ts";
import { AdapterMonitor, CommitMonitor } from "./observe/adapter-monitor.ts";
import { ReportingRegister } from "./observe/server-register.ts";
import { RetentionClock } from "./store/retention-clock.ts";
import { postgresOf } from "./postgres-options.ts";
import type { SharedRateLimiter } from "./rate-limit/valkey/shared-rate-limiter.ts";
import type { ValkeyRateLimiterOptions } from "./rate-limit/valkey/valkey-rate-limiter.ts";
import { type Migrator, NoTables, type TableUse } from "./store/sql/migrations.ts";
import type { StandbyChange } from "./store/postgres/standby-watch.ts";
import type { PostgresStores } from "./store/postgres/store.ts";
import type { RescueOptions } from "./store/sqlite/open-files.ts";

export interface Adapters extends MonitoredStores {
  /** `queueLength` is the number of decisions that wait, of a rate limiter with a queue. */
  readonly rateLimiter: RateLimiter & { readonly queueLength?: number };
  /** Records the bans of the rate limiter. */
  readonly bans: BanRecorder;
  readonly servers: ReportingRegister;
  /** The policy that this server applies. `applyPolicy` replaces it. */
  readonly policy: PolicyInEffect;
  readonly applyPolicy: (stored: Policy) => void;
  /** What this server reports to the others. */
  readonly activity: ActivityCollector;
  /** Monitors the adapter that counts for the rate limits. */
  readonly limiterMonitor: AdapterMonitor;
  /** Returns the time by which old data is deleted. */
  readonly retentionNow: () => number;
  /** Resolves when the server has to stop, with the reason. */
  readonly failed: Promise<Error>;
}

interface MonitoredStores extends DatabaseStores {
  /** Monitors the adapter that stores the data. */
  readonly database: AdapterMonitor;
  readonly commits: CommitMonitor;
  /** Returns the number of writes that wait for the next transaction. */
  readonly commitQueueLength: () => number;
  /** Returns the number of queries that run or wait for a connection of PostgreSQL. */
  readonly queueLength?: () => number;
  /** Returns the free space on the disk of SQLite. */
  readonly freeBytes?: () => number;
  /** Opens what counts requests of keys in PostgreSQL. */
  readonly openKeyCounter?: PostgresStores["openKeyCounter"] | undefined;
  close(): Promise<void>;
}

/**
 * Imports adapters when they are used, so that a start on SQLite does not load the code of PostgreSQL. `testClock`
 * replaces the clock of PostgreSQL for the rate limits.
 */
export async function openAdapters(
  config: Config,
  clock: Clock,
  log: Log,
  testClock?: Clock,
): Promise<Adapters> {
  // Adapters close in reverse order, also after one of them could not close.
  const opened = new AsyncDisposableStack();
  try {
    const usesSqlite = config.databaseUrl === undefined;
    // Without Valkey the latest primary is stored in the directory alone.
    if (usesSqlite || config.limitsUrls === undefined) prepareServerDirectory(config.directory, log);
    if (usesSqlite) opened.defer((await lockDirectory(config.directory)).release);
    const onDoubt = () => log.event("clock.doubted");
    const retention = new RetentionClock(clock, onDoubt, () => log.event("clock.trusted"));
    const { now: retentionNow } = retention;
    const { promise: failed, resolve: onLost } = Promise.withResolvers<Error>();
    const urls = followStorageUrls(config, reportSettingFiles(log));
    opened.defer(() => urls.close());
    const use: Migrator = {
      ...byServer(clock),
      onMigrated(entry) {
        const { before, after } = entry;
        log.event("database.migrated", { from: before?.["schemaVersion"], to: after?.["schemaVersion"] });
        logAudit(log)(entry);
      },
    };
    const stores = await openStores(config, { log, retentionNow, onLost, urls, use });
    opened.defer(() => stores.close());
    await retention.start(stores.storedValues);
    opened.defer(() => retention.stop());
    const bans = new BanRecorder({ audit: stores.audit, keys: stores.keys, log, server: hostname() });
    opened.defer(() => bans.close());
    const onBan = bans.record;
    const activity = new ActivityCollector();
    const { version } = packageJson;
    const self = { id: crypto.randomUUID(), name: hostname(), version, startedAt: clock.now() };
    const servers = await ReportingRegister.open(self, {
      reports: stores.serverReports,
      clock,
      activity: () => activity.collect(),
    });
    opened.defer(() => servers.close());
    const policy = { current: await stores.policies.readPolicy() };
    const ban = () => policy.current.ban;
    const { limiterMonitor, rateLimiter, restoredBans } = await openRateLimiter(config, {
      clock,
      log,
      ban,
      onBan,
      onEarlierBan: bans.recordIfMissing,
      urls,
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
    const shared = { policy, applyPolicy, servers, activity };
    return { ...stores, ...shared, rateLimiter, bans, limiterMonitor, retentionNow, failed, close };
  } catch (error) {
    await opened
      .disposeAsync()
      .catch((closeError: unknown) => log.event("server.close-failed", { error: closeError }));
    throw error;
  }
}

interface StoreOptions {
  /** Which tables are opened; by default, tables are made where there are none. */
  readonly use?: TableUse;
  readonly log?: Log;
  /** How to connect; by default, as the process did when it started. */
  readonly urls?: StorageUrls;
  /** Returns the time by which old data is deleted; by default, that of the writes. */
  readonly retentionNow?: () => number;
  /** Called when the database was deleted or replaced, after its data was saved elsewhere. */
  readonly onLost?: (error: Error) => void;
}

/** Opens the stores of an environment. Where existing ones are asked for and there are none, they are empty. */
export async function openStores(
  storage: StorageConfig,
  options: StoreOptions = {},
): Promise<MonitoredStores> {
  const { log, retentionNow, use } = options;
  if (storage.databaseUrl === undefined) {
    const { directory } = storage;
    if (use === "existing" && !directory.hasDatabase()) {
      directory.rejectLostDatabase();
      return openEmptyStores();
    }
    prepareDirectory(directory, log);
    directory.rejectLostDatabase();
    return openSqliteStores(directory, { ...options, rescue: rescueOf(directory, options) });
  }
  const { openPostgres } = await import("./store/postgres/store.ts");
  const database = new AdapterMonitor("PostgreSQL");
  const commits = new CommitMonitor();
  const { url, ...postgres } = postgresOf(storage, options.urls);
  const address = describeStorage(storage).data;
  const opened = await openPostgres(url, {
    ...postgres,
    use,
    ...(retentionNow && { retentionNow }),
    onAudit: log && logAudit(log),
    onCommit: commits.committed,
    onResponse: (ms) => database.responded(ms),
    onStateChange: (change) => reportDatabase(database, change, { log, address }),
    onStandbyChange: (change) => reportStandbys(database, change, log),
  }).catch((error: unknown) => {
    if (error instanceof Error && error.cause instanceof NoTables) return undefined;
    throw error;
  });
  return opened ? { ...opened, database, commits } : openEmptyStores();
}

/** Opens empty stores that only this process uses. */
async function openEmptyStores(): Promise<MonitoredStores> {
  const path = makeTemporaryDirectory("petstore-empty-");
  const stores = await openSqliteStores(new DataDirectory({ path, environment: "production" }));
  const close = async () => {
    await stores.close();
    removeDirectory(path);
  };
  return { ...stores, close };
}

/** Only servers rescue a database, because they have it open for long. */
function rescueOf(directory: DataDirectory, { log, onLost }: StoreOptions): RescueOptions | undefined {
  const { database: file, rescued: savedTo } = directory.files;
  if (onLost === undefined) return undefined;
  return {
    to: savedTo,
    onRescue() {
      log?.event("database.lost", { file, savedTo });
      const lost = directory.findLostDatabase();
      onLost(new Error(`${lost?.message}; ${lost?.remedy}`));
    },
    onFailure: (error) => log?.event("database.rescue-failed", { file, pid: process.pid, error }),
  };
}

async function openSqliteStores(
  directory: DataDirectory,
  { log, retentionNow, use, rescue }: StoreOptions & { readonly rescue?: RescueOptions | undefined } = {},
): Promise<MonitoredStores> {
  const { openSqlite } = await import("./store/sqlite/store.ts");
  const address = directory.files.database;
  const database = new AdapterMonitor("SQLite");
  const commits = new CommitMonitor(database);
  const opened = openSqlite(directory.files.database, {
    use,
    ...(retentionNow && { retentionNow }),
    ...(rescue && { rescue, operatorReadsInThread: true }),
    onAudit: log && logAudit(log),
    onCommit: commits.committed,
    onStateChange: (change) => reportDatabase(database, change, { log, address }),
  });
  return { ...opened, database, commits, freeBytes: () => directory.freeBytes() };
}

interface DatabaseLog {
  readonly log: Log | undefined;
  /** Where the database is. */
  readonly address: string;
}

function reportDatabase(monitor: AdapterMonitor, change: StateChange, { log, address }: DatabaseLog): void {
  const database = monitor.name;
  monitor.isAvailable = change.state === "up";
  if (change.state === "up") log?.event("database.available", { database, afterMs: change.afterMs });
  else log?.event("database.unavailable", { database, address, cause: messageOf(change.cause) });
}

function reportStandbys(monitor: AdapterMonitor, change: StandbyChange, log: Log | undefined): void {
  monitor.waitsForStandby = change.state === "waiting";
  if (change.state === "released") log?.event("database.commits-again", { afterMs: change.afterMs });
  else {
    const { synchronousStandbyNames, connectedStandbys } = change;
    log?.event("database.waits-for-standby", { synchronousStandbyNames, connectedStandbys });
  }
}

function prepareDirectory(directory: DataDirectory, log: Log | undefined): void {
  const files = directory.prepare();
  if (files.length > 0) log?.event("data-directory.made-private", { files });
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

interface RateLimiterOptions extends Pick<ValkeyOptions, "onEarlierBan" | "urls"> {
  readonly clock: Clock;
  readonly testClock: Clock | undefined;
  readonly log: Log;
  readonly ban: () => BanRules;
  readonly onBan: OnBan;
}

interface OpenedRateLimiter extends Pick<Adapters, "rateLimiter" | "limiterMonitor"> {
  /** Keys with a ban of the last server in this directory. */
  readonly restoredBans: readonly number[];
}

function openRateLimiter(
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
  const { MemoryRateLimiter } = await import("./rate-limit/memory/memory-rate-limiter.ts");
  const { openQuotaStore } = await import("./store/sqlite/quota-store.ts");
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
  const limiterMonitor = new AdapterMonitor("memory");
  return { rateLimiter, limiterMonitor, restoredBans: rateLimiter.restoredBans };
}

async function postgresRateLimiter(
  openKeyCounter: PostgresStores["openKeyCounter"],
  database: AdapterMonitor,
  { clock, testClock, ban, onBan, onEarlierBan }: RateLimiterOptions,
): Promise<OpenedRateLimiter> {
  const { MemoryRateLimiter } = await import("./rate-limit/memory/memory-rate-limiter.ts");
  const { PostgresRateLimiter } = await import("./rate-limit/postgres/postgres-rate-limiter.ts");
  const limiterMonitor = new AdapterMonitor("PostgreSQL", { uses: database });
  const onResponse = (ms: number) => limiterMonitor.responded(ms);
  const rateLimiter = new PostgresRateLimiter({
    clock,
    counter: openKeyCounter({ clock, testClock, ban, onBan, onEarlierBan, onResponse }),
    local: new MemoryRateLimiter({ clock, ban }),
  });
  return { rateLimiter, limiterMonitor, restoredBans: [] };
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

async function valkeyRateLimiter(
  config: Config,
  stores: MonitoredStores,
  options: RateLimiterOptions,
): Promise<OpenedRateLimiter> {
  const { log, testClock: _, ...rest } = options;
  const limiterMonitor = new AdapterMonitor("Valkey", { spare: stores.database });
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

type ValkeyOptions = Omit<
  ValkeyRateLimiterOptions,
  "urls" | "readServers" | "ca" | "prefix" | "local" | "counter"
> & {
  readonly urls?: StorageUrls;
};

/** While Valkey is unavailable, PostgreSQL counts, or on SQLite the only server. */
export async function openValkey(
  storage: StorageConfig,
  { openKeyCounter }: Pick<MonitoredStores, "openKeyCounter">,
  { urls = storageUrlsOf(storage), ...options }: ValkeyOptions,
): Promise<SharedRateLimiter> {
  const { MemoryRateLimiter } = await import("./rate-limit/memory/memory-rate-limiter.ts");
  const { createValkeyRateLimiter } = await import("./rate-limit/valkey/valkey-rate-limiter.ts");
  const { MemoryKeyCounter } = await import("./rate-limit/memory/memory-key-counter.ts");
  const { clock, ban, onBan, onEarlierBan } = options;
  const counterOptions = { clock, ban, onBan, onEarlierBan };
  return createValkeyRateLimiter({
    ...options,
    counter: openKeyCounter?.(counterOptions) ?? new MemoryKeyCounter(counterOptions),
    ...valkeyOf(storage, urls),
    readServers: () => urls.valkey(),
    local: new MemoryRateLimiter({ clock, ban }),
  });
}
