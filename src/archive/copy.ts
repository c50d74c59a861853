/* Copies an environment between SQLite and PostgreSQL, with the quotas of its keys. */

import { existsSync } from "node:fs";
import type { StorageConfig } from "../config/storage.ts";
import type { NewAuditEntry } from "../domain/audit.ts";
import { postgresOf } from "../adapters/postgres-options.ts";
import type { SchemaState } from "../store/sql/migrations.ts";
import { EnvironmentInUse } from "../store/postgres/environment-lock.ts";
import { lockPostgres, postgresTables } from "../store/postgres/table-store.ts";
import { moveAway, publishDatabase, removeDatabase } from "../store/sqlite/durable-files.ts";
import { sqliteTables } from "../store/sqlite/table-store.ts";
import { openQuotaStore } from "../store/sqlite/quota-store.ts";
import type { KeyQuotas, NewTables, TableReader } from "../store/sql/table-store.ts";
import type { OnProgress } from "./progress.ts";
import { copyTables, type TableCopy } from "./copy-tables.ts";

export type Direction = "to PostgreSQL" | "from PostgreSQL";

/**
 * The reason why nothing was copied: sessions of Petstore use PostgreSQL, the source has no data, or a newer release
 * has added something to its tables, which the copy would lack.
 */
type Obstacle =
  | { readonly outcome: "in use"; readonly sessions: number }
  | { readonly outcome: "nothing" }
  | { readonly outcome: "newer tables"; readonly schema: SchemaState };

interface EnvironmentCopyOptions {
  readonly storage: StorageConfig;
  readonly direction: Direction;
  /** The entry for the audit trail of the copy. */
  readonly entry: NewAuditEntry;
  /** Reports progress in rows. */
  readonly onProgress: OnProgress;
}

/**
 * Copies an environment. The caller holds the lock of the data directory. Throws UsageError before anything is copied.
 * `keysWithQuotas` is the number of keys whose quotas were copied; undefined if nothing was.
 */
export async function copyEnvironment(
  options: EnvironmentCopyOptions,
): Promise<Obstacle | (TableCopy & { readonly keysWithQuotas: number | undefined })> {
  const { storage, direction, entry, onProgress } = options;
  const target = postgresOf(storage);
  const { database, quotas: quotaStore } = storage.directory.files;
  const [sqlite, postgres] = [sqliteTables(database), postgresTables(target)];
  const isToPostgres = direction === "to PostgreSQL";
  const [from, to] = isToPostgres ? [sqlite, postgres] : [postgres, sqlite];
  const lock = await lockPostgres(target).catch((error: unknown) => {
    if (error instanceof EnvironmentInUse) return error;
    throw error;
  });
  if (lock instanceof EnvironmentInUse) return { outcome: "in use", sessions: lock.sessions };
  await using _ = lock;
  if (!(await from.exists())) return { outcome: "nothing" };
  const schema = await from.schema();
  if (schema.version > schema.supportedVersion) return { outcome: "newer tables", schema };
  let keysWithQuotas: number | undefined;
  const beforePublish = async (source: TableReader, target: NewTables) => {
    const quotas = isToPostgres ? storedQuotas(quotaStore) : ((await source.quotas?.()) ?? []);
    keysWithQuotas = quotas.length;
    if (isToPostgres) await target.putQuotas?.(quotas);
    else replaceStoredQuotas(quotaStore, quotas);
  };
  return { ...(await copyTables({ from, to, entry, onProgress, beforePublish })), keysWithQuotas };
}

/** Reads the quotas of keys that a server on SQLite has stored. */
function storedQuotas(quotaStore: string): KeyQuotas {
  if (!existsSync(quotaStore)) return [];
  const store = openQuotaStore(quotaStore);
  // Each server counts addresses in its own process.
  const quotas = [...store.load()].flatMap(([{ kind, id }, quota]) =>
    kind === "key" ? [[id, quota] as const] : [],
  );
  store.close();
  return quotas;
}

function replaceStoredQuotas(quotaStore: string, quotas: KeyQuotas): void {
  const copy = `${quotaStore}.copy`;
  removeDatabase(copy);
  const store = openQuotaStore(copy);
  store.save(quotas.map(([id, quota]) => [{ kind: "key", id }, quota]));
  store.close();
  // The file of an interrupted copy looks the same as that of a server.
  moveAway(quotaStore);
  publishDatabase(copy, quotaStore);
}
