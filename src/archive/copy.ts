/** Copies an environment between SQLite and PostgreSQL, and the usage of its keys between SQLite and Valkey. */
import { existsSync } from "node:fs";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import { readTextFile } from "../config/usage-error.ts";
import type { NewAuditEntry } from "../domain/audit.ts";
import { readUsages, writeUsages } from "../rate-limit/valkey/maintenance.ts";
import { postgresSessions, postgresTables } from "../store/postgres/tables.ts";
import { publishDatabase, removeDatabase, renameDurably } from "../store/sqlite/durable-files.ts";
import { sqliteTables } from "../store/sqlite/tables.ts";
import { openUsageStore } from "../store/sqlite/usage-store.ts";
import {
  API_KEYS,
  COPY_PROGRESS,
  type NewTables,
  type TableReader,
  TABLES,
  type TableStore,
} from "../store/tables.ts";
import {
  type Contents,
  contentsOf,
  type ContentsOptions,
  countRows,
  differencesBetween,
  fingerprintOf,
  type OnProgress,
} from "./contents.ts";

export type Direction = "to PostgreSQL" | "from PostgreSQL";

interface EnvironmentCopy {
  /**
   * `same`: an earlier copy has finished. In the other cases nothing was copied: `other`, the target has data of its
   * own; `in use`, sessions use PostgreSQL; `nothing`, the source has no data.
   */
  readonly outcome: "copied" | "same" | "other" | "in use" | "nothing";
  readonly contents: Contents;
  /** Of Petstore in PostgreSQL. */
  readonly sessions: number;
  /** The keys whose usage was copied; undefined without Valkey. */
  readonly keysWithUsage: number | undefined;
}

interface EnvironmentCopyOptions {
  readonly storage: StorageConfig;
  readonly direction: Direction;
  /** Recorded in the audit trail of the copy. */
  readonly entry: NewAuditEntry;
  /** In rows. */
  readonly onProgress: OnProgress;
}

const NOTHING: Contents = { tables: {}, counters: {} };

/** The caller holds the lock of the data directory. */
export async function copyEnvironment(options: EnvironmentCopyOptions): Promise<EnvironmentCopy> {
  const { storage, direction, entry, onProgress } = options;
  const target = { url: storage.databaseUrl ?? "", schema: storage.environment };
  const [sqlite, postgres] = [sqliteTables(pathsOf(storage).store), postgresTables(target)];
  const isToPostgres = direction === "to PostgreSQL";
  const [from, to] = isToPostgres ? [sqlite, postgres] : [postgres, sqlite];
  const sessions = await postgresSessions(target);
  const untouched = { contents: NOTHING, sessions, keysWithUsage: undefined };
  if (sessions > 0) return { outcome: "in use", ...untouched };
  if (!(await from.exists())) return { outcome: "nothing", ...untouched };
  let keysWithUsage: number | undefined;
  const copied = await copyTables({
    from,
    to,
    entry,
    onProgress,
    async beforePublish(source) {
      if (storage.limitsUrls === undefined) return;
      keysWithUsage = isToPostgres
        ? await copyUsageToValkey(storage)
        : await copyUsageFromValkey(storage, source);
    },
  });
  return { ...copied, sessions, keysWithUsage };
}

interface CopyOptions {
  readonly from: TableStore;
  readonly to: TableStore;
  /** Called when the copy is verified and nobody sees it yet. */
  readonly beforePublish: (source: TableReader) => Promise<void>;
  readonly entry: NewAuditEntry;
  readonly onProgress?: OnProgress;
}

/**
 * Copies all tables into a new database, compares the number and the checksum of the rows of both, and publishes the
 * new one with an audit entry in one step. Whenever it is interrupted, the same call finishes it.
 */
export async function copyTables(
  options: CopyOptions,
): Promise<Pick<EnvironmentCopy, "contents"> & { outcome: "copied" | "same" | "other" }> {
  const { from, to, beforePublish, entry, onProgress = () => {} } = options;
  const source = await from.read();
  try {
    const isPresent = await to.exists();
    const rows = await countRows(source);
    // Each step goes through all rows.
    const onRows = (step: string) => (done: number) =>
      onProgress({ step, done, share: done / Math.max(1, rows) });
    const contents = await contentsOf(source, { onRows: onRows("reading") });
    const comparing = { onRows: onRows("comparing") };
    if (isPresent) {
      const copy = await readAndClose(await to.read(), { ...comparing, sourceCounters: contents.counters });
      return { contents, outcome: differencesBetween(contents, copy).length === 0 ? "same" : "other" };
    }
    const target = await to.create(fingerprintOf(contents));
    try {
      await insertRows(source, target, onRows("copying"));
      await target.setCounters(contents.counters);
      await target.addSums();
      const different = differencesBetween(contents, await readAndClose(await target.read(), comparing));
      if (different.length > 0)
        throw new Error(`the copy differs from its source in ${different.join(", ")}`);
      await beforePublish(source);
      if (source.hasChanged?.()) throw new Error("another command has written to the source meanwhile");
      await target.publish(entry);
    } finally {
      await target.close();
    }
    return { contents, outcome: "copied" };
  } finally {
    await source.close();
  }
}

/** The source has the same rows in the same order as when an earlier call inserted the first ones. */
async function insertRows(
  source: TableReader,
  target: NewTables,
  onRows: (rows: number) => void,
): Promise<void> {
  let read = 0;
  for (const table of TABLES) {
    const query = { by: "table_name", values: [table.name] };
    const [progress] = await target.transaction((tx) => tx.find(COPY_PROGRESS, query));
    let inserted = Number(progress?.[1] ?? 0);
    let skipped = inserted;
    for await (const rows of source.rows(table)) {
      const missing = rows.slice(skipped);
      skipped -= rows.length - missing.length;
      if (missing.length > 0) {
        inserted += missing.length;
        await target.transaction(async (tx) => {
          await tx.insert(table, missing);
          await tx.put(COPY_PROGRESS, [[table.name, inserted]]);
        });
      }
      onRows((read += rows.length));
    }
  }
}

async function readAndClose(reader: TableReader, options: ContentsOptions): Promise<Contents> {
  try {
    return await contentsOf(reader, options);
  } finally {
    await reader.close();
  }
}

/** Returns the number of keys. */
async function copyUsageToValkey(storage: StorageConfig): Promise<number> {
  const { usageStore } = pathsOf(storage);
  if (!existsSync(usageStore)) return 0;
  const store = openUsageStore(usageStore);
  // Addresses are counted in each server process, with Valkey too.
  const usages = [...store.load()].filter(([subject]) => subject.kind === "key");
  store.close();
  return writeUsages(valkeyOf(storage), usages);
}

/** Reads the usage of all keys of the source. Returns the number of keys that have any. */
async function copyUsageFromValkey(storage: StorageConfig, source: TableReader): Promise<number> {
  const { usageStore } = pathsOf(storage);
  const ids: number[] = [];
  for await (const rows of source.rows(API_KEYS)) ids.push(...rows.map(([id]) => Number(id)));
  const entries = await readUsages(valkeyOf(storage), ids);
  const copy = `${usageStore}.copy`;
  removeDatabase(copy);
  const store = openUsageStore(copy);
  store.save(entries);
  store.close();
  moveAway(usageStore);
  publishDatabase(copy, usageStore);
  return entries.length;
}

/** Also what an interrupted copy has published: nobody can tell it from quotas of a server. */
function moveAway(usageStore: string): void {
  const time = new Date().toISOString().replaceAll(":", "");
  for (const suffix of ["-wal", "-shm", ""]) {
    const from = usageStore + suffix;
    if (existsSync(from)) renameDurably(from, `${usageStore}.before-${time}${suffix}`);
  }
}

function valkeyOf({ limitsUrls: urls = [], limitsCaFile, environment }: StorageConfig) {
  const ca = limitsCaFile === undefined ? undefined : readTextFile("--limits-ca", limitsCaFile);
  return { urls, ...(ca !== undefined && { ca }), prefix: `petstore:${environment}:` };
}
