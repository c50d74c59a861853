/** What a restore needs to know of a later database, such as the one that it replaces. */
import type { NewAuditEntry } from "../../../domain/audit.ts";
import { AuditEntries } from "../audit.ts";
import type { Connection } from "../connection.ts";
import { withDatabase } from "./snapshot.ts";

/** Keys that the earlier copy of a database and the later database disagree on, by their identifiers. */
export interface KeyDifferences {
  /** Revoked later, so that they are valid in the copy. */
  readonly revoked: readonly number[];
  /** Their secrets were replaced later; the copy accepts the earlier ones. */
  readonly rolled: readonly number[];
  /** Created later, so that the copy does not have them. */
  readonly created: readonly number[];
}

export function keyDifferences(earlier: string, later: string): KeyDifferences {
  return withDatabase(later, (connection) => {
    connection.value("ATTACH ? AS earlier", earlier);
    return {
      revoked: idsOf(
        connection,
        `SELECT id FROM main.api_keys AS later JOIN earlier.api_keys USING (id)
         WHERE later.revoked_at IS NOT NULL AND earlier.api_keys.revoked_at IS NULL`,
      ),
      rolled: idsOf(
        connection,
        `SELECT DISTINCT later.key_id AS id
         FROM main.key_secrets AS later JOIN earlier.key_secrets AS earlier USING (hash)
         WHERE later.valid_until < coalesce(earlier.valid_until, 9223372036854775807)`,
      ),
      created: idsOf(
        connection,
        "SELECT id FROM main.api_keys WHERE id NOT IN (SELECT id FROM earlier.api_keys)",
      ),
    };
  });
}

function idsOf(connection: Connection, sql: string): number[] {
  using statement = connection.prepare<{ id: bigint }, []>(`${sql} ORDER BY 1`);
  return statement.all().map(({ id }) => Number(id));
}

/** Makes the earlier copy continue after the identifiers that the later database has assigned. */
export function skipAssignedIds(earlier: string, later: string): void {
  withDatabase(earlier, (connection) => {
    connection.value("ATTACH ? AS later", later);
    connection.run(`INSERT INTO main.sqlite_sequence (name, seq)
      SELECT name, 0 FROM later.sqlite_sequence WHERE name NOT IN (SELECT name FROM main.sqlite_sequence)`);
    connection.run(`UPDATE main.sqlite_sequence SET seq = max(seq,
      coalesce((SELECT assigned.seq FROM later.sqlite_sequence AS assigned WHERE assigned.name = sqlite_sequence.name), 0))`);
  });
}

export function addAuditEntry(path: string, entry: NewAuditEntry): void {
  withDatabase(path, (connection) => new AuditEntries(connection).insert(entry));
}
