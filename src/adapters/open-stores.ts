import { leaveDatabasesAtExit } from "../runtime/libc.ts";
import { messageOf } from "../runtime/message-of.ts";
import type { DataDirectory } from "../data-directory.ts";
import { type DataLocation, NoDatabase } from "../data-location.ts";
import type { StateChange, DatabaseStores } from "../domain/ports/stores.ts";
import { logAudit } from "../observe/event-reports.ts";
import type { Log } from "../observe/log.ts";
import {
  EngineMonitor,
  CommitMonitor,
  type DatabaseMonitor,
  type SqliteLogMonitor,
} from "../observe/engine-monitor.ts";
import { DURATION_BOUNDS, Histogram } from "../observe/histogram.ts";
import { NoTables, type TableUse } from "../store/sql/migrations.ts";
import type { StandbyChange } from "../store/postgres/standby-watch.ts";
import type { PostgresStores } from "../store/postgres/open-postgres.ts";
import type { RescueOptions } from "../store/sqlite/open-files.ts";

export interface MonitoredStores extends DatabaseStores {
  /** Monitors the adapter that stores the data. */
  readonly database: DatabaseMonitor;
  readonly commits: CommitMonitor;
  /** Returns the number of writes that wait for the next transaction. */
  readonly commitQueueLength: () => number;
  /** Returns the number of queries that run or wait for a connection of PostgreSQL. */
  readonly queueLength?: () => number;
  /** The log of SQLite. */
  readonly sqliteLog?: SqliteLogMonitor;
  /** Returns the free space on the disk of SQLite. */
  readonly freeBytes?: () => number;
  /** Opens what limits the requests of keys in PostgreSQL. */
  readonly openKeyLimiter?: PostgresStores["openKeyLimiter"] | undefined;
  close(): Promise<void>;
}

interface StoreOptions {
  /** Which tables are opened; by default, tables are made where there are none. */
  readonly use?: TableUse;
  readonly log?: Log;
  /** Reads the URL of PostgreSQL again; by default, it is that with which the process started. */
  readonly readUrl?: (() => string) | undefined;
  /** Returns the time by which old data is deleted; by default, that of the writes. */
  readonly retentionNow?: () => number;
  /**
   * Given by a server. Called when the database was deleted or replaced, after its data was saved elsewhere, and when
   * the disk did not confirm a write.
   */
  readonly onLost?: (error: Error) => void;
}

/** Opens the stores of an environment. Throws NoDatabase where existing ones are asked for and there are none. */
export async function openStores(
  location: DataLocation,
  options: StoreOptions = {},
): Promise<MonitoredStores> {
  const { log, readUrl, retentionNow, use } = options;
  const { directory, postgres, address } = location;
  if (postgres === undefined) {
    if (use === "existing") location.rejectMissingDatabase();
    prepareDirectory(directory, log);
    directory.rejectLostDatabase();
    return openSqliteStores(directory, { ...options, rescue: rescueOf(directory, options) });
  }
  const { openPostgres } = await import("../store/postgres/open-postgres.ts");
  const database = new EngineMonitor("PostgreSQL");
  const commits = new CommitMonitor();
  const opened = await openPostgres(postgres.url, {
    ...postgres,
    readUrl,
    use,
    ...(retentionNow && { retentionNow }),
    onAudit: log && logAudit(log),
    onCommit: commits.committed,
    onResponse: (ms) => database.responded(ms),
    onStateChange: (change) => reportDatabase(database, change, { log, address }),
    onStandbyChange: (change) => reportStandbys(database, change, log),
  }).catch((error: unknown) => {
    throw error instanceof Error && error.cause instanceof NoTables ? new NoDatabase(location) : error;
  });
  return { ...opened, database, commits };
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
  {
    log,
    retentionNow,
    use,
    onLost,
    rescue,
  }: StoreOptions & { readonly rescue?: RescueOptions | undefined } = {},
): Promise<MonitoredStores> {
  const { openSqlite } = await import("../store/sqlite/open-sqlite.ts");
  const address = directory.files.database;
  const database = new EngineMonitor("SQLite");
  const commits = new CommitMonitor(database);
  const syncs = new Histogram(DURATION_BOUNDS);
  const opened = openSqlite(directory.files.database, {
    use,
    ...(retentionNow && { retentionNow }),
    ...(rescue && { rescue }),
    server: onLost && {
      onSync: (ms) => syncs.observe(ms / 1_000),
      onCheckpointFailure: (error) => log?.event("database.checkpoint-failed", { file: address, error }),
    },
    onSyncFailure(error) {
      leaveDatabasesAtExit();
      log?.event("database.sync-failed", { file: address, error });
      onLost?.(new Error(`${address}: ${error.message}; check the disk and start the server again`));
    },
    onAudit: log && logAudit(log),
    onCommit: commits.committed,
    onStateChange: (change) => reportDatabase(database, change, { log, address }),
  });
  const { logBytes } = opened;
  const sqliteLog = logBytes && { bytes: logBytes, syncs };
  return {
    ...opened,
    database,
    commits,
    freeBytes: () => directory.freeBytes(),
    ...(sqliteLog && { sqliteLog }),
  };
}

interface DatabaseLog {
  readonly log: Log | undefined;
  /** Where the database is. */
  readonly address: string;
}

function reportDatabase(monitor: DatabaseMonitor, change: StateChange, { log, address }: DatabaseLog): void {
  const database = monitor.engine;
  monitor.isAvailable = change.state === "up";
  if (change.state === "up") log?.event("database.available", { database, afterMs: change.afterMs });
  else log?.event("database.unavailable", { database, address, cause: messageOf(change.cause) });
}

function reportStandbys(monitor: DatabaseMonitor, change: StandbyChange, log: Log | undefined): void {
  monitor.waitsForStandby = change.state === "waiting";
  if (change.state === "released") log?.event("database.commits-again", { afterMs: change.afterMs });
  else {
    const { synchronousStandbyNames, connectedStandbys } = change;
    log?.event("database.waits-for-standby", { synchronousStandbyNames, connectedStandbys });
  }
}

export function prepareDirectory(directory: DataDirectory, log: Log | undefined): void {
  const files = directory.prepare();
  if (files.length > 0) log?.event("data-directory.made-private", { files });
}
