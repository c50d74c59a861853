import type { Statement } from "bun:sqlite";
import type { AuditEntry, AuditQuery, NewAuditEntry } from "../../domain/audit.ts";
import type { AuditStore, Page } from "../../domain/ports.ts";
import {
  auditEntryOf,
  auditPage,
  type AuditRow,
  type AuditValues,
  auditValues,
  INSERT_AUDIT,
  pageOf,
} from "../rows.ts";
import { SQLITE_DIALECT } from "../dialect.ts";
import type { Connection } from "./connection.ts";

/** One to two milliseconds, in which requests wait. */
const DELETED_AT_ONCE = 100;

/** Writes audit entries in the transactions of a connection. */
export class AuditEntries {
  readonly #insert: Statement<unknown, AuditValues>;

  constructor(connection: Connection) {
    this.#insert = connection.prepare(`${INSERT_AUDIT} VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  }

  insert(entry: NewAuditEntry): void {
    this.#insert.run(...auditValues(entry));
  }
}

export class SqliteAuditStore implements AuditStore {
  readonly #entries: AuditEntries;
  readonly #delete: Statement<unknown, [number, number]>;

  constructor(private readonly connection: Connection) {
    this.#entries = new AuditEntries(connection);
    this.#delete = connection.prepare(`DELETE FROM audit WHERE id IN
      (SELECT id FROM audit INDEXED BY audit_by_time WHERE at < ? ORDER BY at, id LIMIT +?)`);
  }

  recordAudit(entry: NewAuditEntry): Promise<void> {
    return this.connection.transactionWhenUnlocked(() => this.#entries.insert(entry));
  }

  deleteAudit(before: number): Promise<boolean> {
    return this.connection.transactionWhenUnlocked(
      () => this.#delete.run(before, DELETED_AT_ONCE).changes === DELETED_AT_ONCE,
    );
  }

  listAudit(query: AuditQuery): Page<AuditEntry> {
    const rows = this.connection.query<AuditRow>(auditPage(query, SQLITE_DIALECT));
    return pageOf(rows, query.limit, auditEntryOf);
  }
}
