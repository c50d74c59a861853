/* The database that a backup is restored to. */

import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DataDirectory } from "../data-directory.ts";
import type { DataLocation, PostgresLocation } from "../data-location.ts";
import type { Attribution } from "../domain/audit.ts";
import { link, makeTemporaryDirectory, removeDirectory, removeFile, statOf } from "../runtime/own-files.ts";
import { EnvironmentInUse } from "../store/postgres/environment-lock.ts";
import {
  lockPostgres,
  type NewPostgresTables,
  type PostgresTableReader,
  postgresTables,
} from "../store/postgres/table-store.ts";
import { publishDatabase, removeLog } from "../store/sqlite/durable-files.ts";
import { COMPARED_TABLES, keyDifferences } from "../store/sqlite/key-differences.ts";
import { isOpenElsewhere, lockWrites } from "../store/sqlite/process-lock.ts";
import { assignedIds, checkSchema, emptyLog } from "../store/sqlite/snapshot.ts";
import { readSavedQuotas } from "../store/sqlite/backup-tables.ts";
import { sqliteTables } from "../store/sqlite/table-store.ts";
import { openQuotaStore } from "../store/sqlite/quota-store.ts";
import type { KeyQuotas, TableReader } from "../store/sql/table-store.ts";
import { countOf } from "../text/formatting.ts";
import { bytesOf, timedName } from "./backup-files.ts";
import { contentsOf } from "./contents.ts";
import type { OnProgress } from "./progress.ts";
import { fillNewTables } from "./fill-tables.ts";
import { restoredQuotas } from "./restored-quotas.ts";

/** The reason why a backup cannot be restored, for the operator. */
export class RestoreRejection extends Error {}

/** Keeps others from the data that are replaced, or shows that somebody uses them. */
interface DataLock extends AsyncDisposable {
  /** Throws if others may have used the data meanwhile. */
  confirm(): Promise<void>;
}

interface Publishing {
  /** The name that the present database gets, if there is one. */
  readonly replaced: string | undefined;
  /** The quotas of keys in the backup. */
  readonly quotas: KeyQuotas;
  readonly lock: DataLock;
  readonly by: Attribution;
  readonly onProgress: OnProgress;
}

/** The database that a backup is restored to. */
export type RestoreTarget = ReturnType<typeof sqliteTarget>;

export function targetOf(location: DataLocation): RestoreTarget {
  const { directory, postgres, address } = location;
  return postgres === undefined ? sqliteTarget(directory) : postgresTarget(postgres, address);
}

/** Compares a backup with a later database, which may be damaged: that may be the reason for the restore. */
export function compareFiles(backup: string, later: string, now: number) {
  try {
    checkSchema(later);
    /** `assigned` are the identifiers after which a restored database continues. */
    return { later, keys: keyDifferences(backup, later, now), assigned: assignedIds(later) };
  } catch {
    return undefined;
  }
}

function sqliteTarget(directory: DataDirectory) {
  const { environment, files } = directory;
  const { database, quotas: quotaStore } = files;
  return {
    name: directory.name,
    /** Whether the restored database has the newest tables. */
    isMigrated: false,
    exists: async () => existsSync(database),
    /** Compares the keys of a backup with the present ones. Undefined if those cannot be read. */
    compare: async (backup: string, now: number) => compareFiles(backup, database, now),
    /** The name that the present database gets when it is replaced. */
    async nameReplaced(at: number): Promise<string> {
      const name = join(directory.path, `${timedName(`${environment}-replaced`, at)}.db`);
      return existsSync(name) ? this.nameReplaced(at + 1_000) : name;
    },
    /** Throws if a server or another command uses the database. Others can read it until `confirm`, and not write. */
    async lock(): Promise<DataLock> {
      const rejectUse = (waitMs?: number) => {
        if (!isOpenElsewhere(database, waitMs)) return;
        throw new RestoreRejection(
          `another command uses the database in ${directory.name}; run this one again when it is done`,
        );
      };
      rejectUse();
      const writes = lockWrites(database);
      const unlock = () => writes[Symbol.dispose]();
      return {
        async confirm() {
          unlock();
          // Who has waited for the lock has the database open, and would write meanwhile.
          rejectUse(0);
        },
        async [Symbol.asyncDispose]() {
          unlock();
        },
      };
    },
    /** Makes a database of SQLite the present one in one step. */
    async publish(copy: string, { replaced, quotas, lock, by }: Publishing): Promise<void> {
      await lock.confirm();
      // A restore that is killed after this has lifted no ban, and the next one finds all of the quotas again.
      if (quotas.length > 0) putBack(quotaStore, quotas, by.at);
      if (replaced !== undefined) keepAs(replaced, database);
      publishDatabase(copy, database);
    },
  };
}

/** Adds quotas to those that a server has saved. */
function putBack(quotaStore: string, quotas: KeyQuotas, now: number): void {
  const restored = restoredQuotas(quotas, readSavedQuotas(quotaStore), now);
  const store = openQuotaStore(quotaStore);
  try {
    store.save(restored.map(([id, quota]) => [{ kind: "key", id }, quota]));
  } finally {
    store.close();
  }
}

/** Gives a closed database another name in addition, and removes its log. */
function keepAs(name: string, database: string): void {
  try {
    emptyLog(database);
  } catch {
    // A damaged database keeps its log.
  }
  // A restore that was killed here has left the database another name, which is not that of a replaced one.
  const own = new Set([database, `${database}-wal`].map((path) => statOf(path)?.ino));
  for (const other of readdirSync(dirname(database)).filter((entry) => entry.includes("-replaced-"))) {
    const path = join(dirname(database), other);
    if (own.has(statOf(path)?.ino)) removeFile(path);
  }
  link(database, name);
  if (bytesOf(`${database}-wal`) > 0) link(`${database}-wal`, `${name}-wal`);
  removeLog(database);
}

function postgresTarget(postgres: PostgresLocation, name: string): RestoreTarget {
  const { schema: environment } = postgres;
  const tables = postgresTables({ ...postgres, readsNewer: true });
  const readPresent = async <T>(work: (present: PostgresTableReader) => Promise<T>): Promise<T> => {
    const { version, supportedVersion } = await tables.schema();
    if (version < supportedVersion) {
      throw new RestoreRejection(
        `${name} has tables of an earlier release; restore with that release, or migrate them first with petstore migrate`,
      );
    }
    await using present = await tables.read();
    return await work(present);
  };
  const rejectUse = (error: unknown): never => {
    if (!(error instanceof EnvironmentInUse)) throw error;
    throw new RestoreRejection(
      error.sessions === 0
        ? `another petstore restore replaces the data of ${environment}, or the connection that kept others from them was lost; run this one again`
        : `${countOf(error.sessions, "session")} of Petstore in ${environment} use ${name}; stop all servers first`,
    );
  };
  return {
    name: `${name} (${environment})`,
    isMigrated: true,
    exists: tables.exists,
    async compare(backup, now) {
      const directory = makeTemporaryDirectory("petstore-restore-");
      try {
        const later = join(directory, "keys.db");
        await readPresent((present) => copyKeys(present, later));
        const comparison = compareFiles(backup, later, now);
        return comparison && { ...comparison, later: name };
      } finally {
        removeDirectory(directory);
      }
    },
    async nameReplaced(at) {
      const schema = timedName(`${environment}-replaced`, at).toLowerCase().replaceAll("-", "_");
      const isTaken = await postgresTables({ ...postgres, schema }).exists();
      return isTaken ? this.nameReplaced(at + 1_000) : schema;
    },
    lock: () => lockPostgres(postgres).catch(rejectUse),
    async publish(copy, { replaced, quotas, lock, by, onProgress }) {
      await using source = await sqliteTables(copy, by).read();
      const beforePublish = async (target: NewPostgresTables) => {
        const present = replaced && (await readPresent(async (reader) => reader.quotas()));
        const { quotas: kept, now } = present || { quotas: [], now: by.at };
        await target.putQuotas(restoredQuotas(quotas, kept, now));
        await lock.confirm();
      };
      await fillNewTables({ source, to: tables, replaced, beforePublish, onProgress }).catch(rejectUse);
    },
  };
}

/** Copies what is compared to a database of SQLite. */
async function copyKeys(source: TableReader, to: string): Promise<void> {
  await using target = await sqliteTables(to).create();
  const { counters } = await contentsOf(source, { tables: COMPARED_TABLES, onBatch: target.insert });
  await target.complete(counters);
  await target.publish({});
}
