/* Makes a backup: a copy of the database as it is at one moment, which says itself what it is. */

import { join } from "node:path";
import { type DataLocation, NoDatabase } from "../data-location.ts";
import { makeDirectory } from "../runtime/own-files.ts";
import { type PostgresTables, postgresTables } from "../store/postgres/table-store.ts";
import { publishDatabase } from "../store/sqlite/durable-files.ts";
import { acquireLock } from "../store/sqlite/process-lock.ts";
import { describeCopy, readSavedQuotas } from "../store/sqlite/backup-tables.ts";
import type { DatabaseFacts } from "../store/sqlite/snapshot.ts";
import { sqliteTables } from "../store/sqlite/table-store.ts";
import type { KeyQuotas, TableStore } from "../store/sql/table-store.ts";
import { formatTime } from "../text/formatting.ts";
import {
  bytesOf,
  checkDatabase,
  listBackups,
  newBackupPath,
  partialBackup,
  removeBackup,
  removeRemains,
  writeChecksum,
} from "./backup-files.ts";
import type { OnProgress } from "./progress.ts";
import { fillNewTables } from "./fill-tables.ts";
import { callInThread } from "./call-in-thread.ts";

interface BackupOptions {
  /** The data to back up. */
  readonly location: DataLocation;
  /** The directory of backups, which can hold any number of them. */
  readonly directory: string;
  /** How many backups of the environment are kept, this one included; undefined keeps all. */
  readonly keep: number | undefined;
  readonly at: number;
  readonly version: string;
  readonly onProgress: OnProgress;
  /** Called if the backup is made, but its time cannot be recorded for the metrics. */
  readonly onUnrecorded: (error: unknown) => void;
}

export type Backup = Awaited<ReturnType<typeof makeBackup>>;

/**
 * Copies the database of an environment. A backup appears in the directory when it is complete, verified and on the
 * disk; until then it has another name. Throws if another process is making a backup there.
 */
export async function makeBackup(options: BackupOptions) {
  const { location, directory, keep, at, version, onProgress, onUnrecorded } = options;
  const { environment } = location;
  location.rejectMissingDatabase();
  makeDirectory(directory);
  using lock = acquireLock(join(directory, `.${environment}.lock`));
  if (lock === undefined) throw new Error(`another backup of ${environment} to ${directory} is running`);
  const partial = partialBackup(directory, environment);
  removeRemains(directory, environment);
  const path = newBackupPath(directory, environment, at);
  const { files } = location.directory;
  const postgres = location.postgres && postgresTables(location.postgres);
  await (postgres ? rejectOtherTables(location, postgres) : rejectEarlierTables(files.database));
  let facts: DatabaseFacts;
  try {
    const quotas = await (postgres
      ? copyTablesToFile(postgres, partial, onProgress)
      : copyFiles(files, partial, onProgress));
    // A damaged database makes a damaged copy.
    facts = await checkDatabase(partial, "the database", { step: "checking", onProgress });
    describeCopy(partial, { environment, createdAt: formatTime(at), version, quotas });
    await writeChecksum(partial, path, onProgress);
    publishDatabase(partial, path);
  } finally {
    removeRemains(directory, environment);
  }
  try {
    await (postgres ?? sqliteTables(files.database)).recordBackup(at);
  } catch (error) {
    onUnrecorded(error);
  }
  /** The paths of the earlier backups that were removed. */
  const removed = keep === undefined ? [] : listBackups(directory, environment).slice(0, -keep);
  for (const earlier of removed) removeBackup(earlier);
  const { schemaVersion, rows } = facts;
  return { path, schemaVersion, rows, removed, bytes: bytesOf(path) };
}

/** Copies a database of SQLite with the tables that it has, because nothing is migrated, and returns the quotas. */
async function copyFiles(
  files: { readonly database: string; readonly quotas: string },
  to: string,
  onProgress: OnProgress,
): Promise<KeyQuotas> {
  const from = files.database;
  // A key that is created after this is not in the copy, and another key may get its identifier.
  const quotas = readSavedQuotas(files.quotas);
  // The log can have most of the data.
  const expectedBytes = bytesOf(from) + bytesOf(`${from}-wal`);
  await callInThread("copySnapshot", [from, to], () => {
    const done = bytesOf(to);
    onProgress({ step: "copying", unit: "bytes", done, share: done / expectedBytes });
  });
  return quotas;
}

/** Throws if a release before 1.3.0 has made the tables. */
async function rejectEarlierTables(path: string): Promise<void> {
  const { version, supportedVersion, rejection } = await sqliteTables(path).schema();
  if (rejection !== undefined && version < supportedVersion)
    throw new Error(`cannot back up ${path}: ${rejection}`);
}

/** Throws if there are no tables, or those of another release: a backup leaves nothing out, and migrates nothing. */
async function rejectOtherTables(location: DataLocation, tables: TableStore): Promise<void> {
  if (!(await tables.exists())) throw new NoDatabase(location);
  const { version, supportedVersion } = await tables.schema();
  if (version === supportedVersion) return;
  throw new Error(
    `${location.address} has tables of ${version < supportedVersion ? "an earlier release" : "a newer release"}; make the backup with that release`,
  );
}

/** Copies the tables of PostgreSQL, and returns the quotas at the same moment. */
async function copyTablesToFile(
  tables: PostgresTables,
  to: string,
  onProgress: OnProgress,
): Promise<KeyQuotas> {
  await using source = await tables.read();
  const { quotas } = await source.quotas();
  await fillNewTables({ source, to: sqliteTables(to), onProgress });
  return quotas;
}
