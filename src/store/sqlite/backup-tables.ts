/* What a backup has in addition to the tables of a store. */

import { dateTime, type Infer, Invalid, object, oneOf, text } from "../../api/schema.ts";
import { ENVIRONMENTS } from "../../domain/environments.ts";
import { fromStored, toStored } from "../../domain/stored-quota.ts";
import type { KeyQuotas } from "../sql/table-store.ts";
import { statOf } from "../../runtime/own-files.ts";
import { hasTable } from "./migrate.ts";
import { QUOTA_COLUMNS, quotasIn, withHint } from "./quota-store.ts";
import { BACKUP_TABLES, dropBackupTables } from "./schema-check.ts";
import { withDatabase } from "./snapshot.ts";

/** What a backup is. The backup itself says it, in the row of a table. */
const Description = object({
  environment: oneOf(ENVIRONMENTS),
  createdAt: dateTime(),
  /** The release that made the backup. */
  version: text(100),
});

export type BackupDescription = Infer<typeof Description>;

interface BackupFacts extends BackupDescription {
  readonly quotas: KeyQuotas;
}

/** Writes to a copy what it is, and makes it a database in one file, which can be read where nothing can be written. */
export function describeCopy(path: string, { environment, createdAt, version, quotas }: BackupFacts): void {
  const insertQuota = `INSERT INTO quotas VALUES (?${", ?".repeat(QUOTA_COLUMNS.length)})`;
  withDatabase(path, (connection) => {
    connection.value("PRAGMA journal_mode = DELETE");
    connection.transaction(() => {
      // Somebody may have copied a backup to the place of a database.
      dropBackupTables(connection);
      for (const sql of Object.values(BACKUP_TABLES)) connection.exec(sql);
      connection.value("INSERT INTO backup VALUES (?, ?, ?)", environment, createdAt, version);
      for (const [keyId, quota] of quotas) connection.run(insertQuota, keyId, ...toStored(quota));
    });
  });
}

/** Reads what a backup is. `place` names the backup, of which the path can be a copy. */
export function readDescription(path: string, place: string): BackupDescription {
  const found = withDatabase(path, (connection) =>
    hasTable(connection, "backup")
      ? connection.get("SELECT environment, created_at AS createdAt, version FROM backup")
      : undefined,
  );
  const description = Description.read(found);
  if (description instanceof Invalid) throw new Error(`${place} does not describe a backup`);
  return description;
}

/** Reads the quotas of keys that a server has saved, which may be running. Each server counts addresses for itself. */
export function readSavedQuotas(path: string): KeyQuotas {
  if (statOf(path) === undefined) return [];
  try {
    return withDatabase(path, (connection) => {
      // A server may be making the tables.
      const all = hasTable(connection, "standings") ? [...quotasIn(connection)] : [];
      return all.flatMap(([{ kind, id }, quota]) => (kind === "key" ? [[id, quota] as const] : []));
    });
  } catch (error) {
    throw withHint(error);
  }
}

/** Reads the quotas of a backup. Those of releases before 2.0 have none. */
export function readBackupQuotas(path: string): KeyQuotas {
  return withDatabase(path, (connection) => {
    if (!hasTable(connection, "quotas")) return [];
    const rows = connection.all<Record<string, bigint>>(
      `SELECT key_id, ${QUOTA_COLUMNS.join(", ")} FROM quotas ORDER BY key_id`,
    );
    return rows.map((row) => {
      const [keyId = 0, ...numbers] = Object.values(row).map(Number);
      return [keyId, fromStored(numbers)] as const;
    });
  });
}
