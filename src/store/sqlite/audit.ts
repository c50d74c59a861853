import type { AuditEntry, AuditQuery, NewAuditEntry } from "../../domain/audit.ts";
import type { AuditStore, Page } from "../../domain/ports.ts";
import {
  auditEntryOf,
  auditPage,
  type AuditRow,
  auditValues,
  INSERT_AUDIT,
  pageOf,
  SQLITE_DIALECT,
} from "../rows.ts";
import type { Connection } from "./connection.ts";

/** One to two milliseconds, in which requests wait. */
const DELETED_AT_ONCE = 100;

/** In the transaction of the connection. */
export function insertAudit(connection: Connection, entry: NewAuditEntry): void {
  connection.run(`${INSERT_AUDIT} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, ...auditValues(entry));
}

const DELETE = `DELETE FROM audit WHERE id IN
  (SELECT id FROM audit INDEXED BY audit_by_time WHERE at < ? ORDER BY at, id LIMIT +?)`;

export class SqliteAuditStore implements AuditStore {
  constructor(private readonly connection: Connection) {}

  recordAudit(entry: NewAuditEntry): Promise<void> {
    return this.connection.transactionWhenUnlocked(() => insertAudit(this.connection, entry));
  }

  deleteAudit(before: number): Promise<boolean> {
    return this.connection.transactionWhenUnlocked(
      () => this.connection.run(DELETE, before, DELETED_AT_ONCE).changes === DELETED_AT_ONCE,
    );
  }

  listAudit(query: AuditQuery): Page<AuditEntry> {
    const rows = this.connection.query<AuditRow>(auditPage(query, SQLITE_DIALECT));
    return pageOf(rows, query.limit, auditEntryOf);
  }
}
