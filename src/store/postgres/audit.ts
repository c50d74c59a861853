import type { SQL } from "bun";
import type { AuditEntry, AuditQuery, NewAuditEntry } from "../../domain/audit.ts";
import type { AuditStore, Page } from "../../domain/ports.ts";
import {
  auditEntryOf,
  auditPage,
  type AuditRow,
  auditValues,
  INSERT_AUDIT,
  pageOf,
  POSTGRES_DIALECT,
} from "../rows.ts";
import type { Pools } from "./pool.ts";

/** Writes an audit entry in the transaction of a change. */
export async function insertAudit(tx: SQL, entry: NewAuditEntry): Promise<void> {
  await tx.unsafe(`${INSERT_AUDIT} VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, auditValues(entry));
}

const DELETED_AT_ONCE = 100;
/** Two instances that delete at the same time delete different rows. */
const DELETE = `WITH deleted AS (
    DELETE FROM audit WHERE id = ANY (ARRAY(
      SELECT id FROM audit WHERE at < $1 ORDER BY at, id LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING id
  )
  SELECT count(*)::int AS count FROM deleted`;

export class PostgresAuditStore implements AuditStore {
  constructor(private readonly pools: Pools) {}

  recordAudit(entry: NewAuditEntry): Promise<void> {
    return this.pools.writes.transaction((tx) => insertAudit(tx, entry));
  }

  async listAudit(query: AuditQuery): Promise<Page<AuditEntry>> {
    const { sql: select, values } = auditPage(query, POSTGRES_DIALECT);
    const rows = await this.pools.reads.query((sql) => sql.unsafe<AuditRow[]>(select, values));
    return pageOf(rows, query.limit, auditEntryOf);
  }

  async deleteAudit(before: number): Promise<boolean> {
    const [row] = await this.pools.writes.query((sql) =>
      sql.unsafe<{ count: number }[]>(DELETE, [before, DELETED_AT_ONCE]),
    );
    return row?.count === DELETED_AT_ONCE;
  }
}
