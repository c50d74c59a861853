import type { SQL } from "bun";
import type { AuditEntry, AuditQuery, NewAuditEntry } from "../../domain/audit.ts";
import type { AuditStore, Page } from "../../domain/ports.ts";
import {
  auditEntryOf,
  auditPage,
  type AuditRow,
  auditValues,
  type Dialect,
  INSERT_AUDIT,
} from "../audit-rows.ts";
import { pageOf } from "../rows.ts";
import type { Pools } from "./pools.ts";

/** PostgreSQL has statistics, and finds the best index by itself. */
export const POSTGRES_DIALECT: Dialect = { parameter: (n) => `$${n}`, indexedBy: () => "" };

/** Writes an audit entry in the transaction of a change. */
export async function insertAudit(tx: SQL, entry: NewAuditEntry): Promise<void> {
  await tx.unsafe(`${INSERT_AUDIT} VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, auditValues(entry));
}

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
}
