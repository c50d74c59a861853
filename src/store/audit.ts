import type {
  Actor,
  AuditAction,
  AuditedValues,
  AuditEntry,
  AuditQuery,
  AuditTarget,
  NewAuditEntry,
} from "../domain/audit.ts";
import type { AuditStore, Page } from "../domain/ports.ts";
import type { Awaitable } from "../runtime/event-loop.ts";
import {
  type Dialect,
  readPage,
  requireRow,
  rowsOf,
  type SqlDatabase,
  SqlValues,
  type SqlValue,
  type Statement,
  type Statements,
  type Steps,
} from "./statements.ts";

interface AuditRow {
  readonly id: bigint;
  readonly at: bigint;
  readonly actor: Actor["kind"];
  readonly actorName: string | null;
  readonly operator: string | null;
  readonly action: AuditAction;
  readonly targetKind: AuditTarget["kind"] | null;
  readonly targetId: bigint | null;
  /** Both columns are JSON objects. */
  readonly valuesBefore: string | null;
  readonly valuesAfter: string | null;
}

const SELECT = `SELECT id, at, actor, actor_name AS "actorName", operator, action, target_kind AS "targetKind",
  target_id AS "targetId", values_before AS "valuesBefore", values_after AS "valuesAfter" FROM audit`;

const INSERT = `INSERT INTO audit
  (at, actor, actor_name, operator, action, target_kind, target_id, values_before, values_after)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`;

/** Adds an entry in the transaction of the change that it describes. */
export function* addAudit(entry: NewAuditEntry): Steps<void> {
  const { at, actor, action, target, before, after } = entry;
  const { kind, name = null, operator = null } = actor;
  const changed = [target?.kind ?? null, target?.id ?? null, jsonOf(before), jsonOf(after)];
  yield { sql: INSERT, values: [at, kind, name, operator, action, ...changed], audited: entry };
}

export type OnAudit = (entry: AuditEntry) => void;

/** Runs a transaction, and reports its audit entries after its commit. */
export async function reportAudit<T>(
  statements: Statements<T>,
  write: (statements: Statements<T>) => Promise<T>,
  onAudit: OnAudit | undefined,
): Promise<T> {
  if (onAudit === undefined) return write(statements);
  let entries: AuditEntry[] = [];
  const result = await write(function* () {
    entries = [];
    return yield* collectAudit(statements(), entries);
  });
  for (const entry of entries) onAudit(entry);
  return result;
}

function* collectAudit<T>(steps: Steps<T>, entries: AuditEntry[]): Steps<T> {
  let step = steps.next();
  while (step.done !== true) {
    const { audited } = step.value;
    const rows = yield step.value;
    // The row has the column that the statement returns.
    const [row] = rows as Pick<AuditEntry, "id">[];
    if (audited !== undefined) entries.push({ ...audited, id: requireRow(row).id });
    step = steps.next(rows);
  }
  return step.value;
}

/** Makes the transactions of a database report their audit entries. */
export function auditedDatabase(database: SqlDatabase, onAudit: OnAudit | undefined): SqlDatabase {
  return { ...database, write: (statements) => reportAudit(statements, database.write, onAudit) };
}

function jsonOf(values: AuditedValues | undefined): string | null {
  return values === undefined ? null : JSON.stringify(values);
}

/** Columns that are null in the row are absent from the entry. */
function entryOf(row: AuditRow): AuditEntry {
  const { id, at, actor, actorName, operator, action, targetKind, targetId, valuesBefore, valuesAfter } = row;
  const hasTarget = targetKind !== null && targetId !== null;
  return {
    id,
    at: Number(at),
    actor: {
      kind: actor,
      ...(actorName !== null && { name: actorName }),
      ...(operator !== null && { operator }),
    },
    action,
    ...(hasTarget && { target: { kind: targetKind, id: targetId } }),
    ...(valuesBefore !== null && { before: JSON.parse(valuesBefore) }),
    ...(valuesAfter !== null && { after: JSON.parse(valuesAfter) }),
  };
}

/**
 * The statement for a page of entries, newest first. Each combination of filters has its own text, so that it gets its
 * own plan.
 */
export function auditPage(query: AuditQuery, dialect: Dialect): Statement {
  const { action, actor, operator, target, since, until, before, after, limit } = query;
  const values = new SqlValues(dialect);
  const add = (value: SqlValue) => values.add(value);
  const conditions: string[] = [];
  if (target) conditions.push(`target_kind = ${add(target.kind)} AND target_id = ${add(target.id)}`);
  if (action) conditions.push(`action = ${add(action)}`);
  if (actor) conditions.push(`actor = ${add(actor)}`);
  if (operator) conditions.push(`operator = ${add(operator)}`);
  if (since !== undefined) conditions.push(`at >= ${add(since)}`);
  if (until !== undefined) conditions.push(`at < ${add(until)}`);
  if (before !== undefined) {
    const id = add(before);
    conditions.push(`(at, id) < ((SELECT at FROM audit WHERE id = ${id}), ${id})`);
  }
  if (after !== undefined) conditions.push(`id > ${add(after)}`);
  const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  const from = after === undefined ? `${SELECT}${dialect.indexedBy(indexOf(query))}` : SELECT;
  const order = after === undefined ? "at DESC, id DESC" : "id";
  // The statement selects one row more than the page: it shows that another page follows. SQLite plans by the value of
  // a bare LIMIT.
  const sql = `${from}${where} ORDER BY ${order} LIMIT +${add(limit + 1)}`;
  return { sql, values: values.all, isVaried: true };
}

/**
 * The index that a query reads. A target and an operator have few entries. Every other index contains exactly the
 * entries that the filters select.
 */
function indexOf({ target, operator, action, actor }: AuditQuery): string {
  if (target) return "audit_by_target";
  if (operator) return "audit_by_operator";
  if (action) return actor ? "audit_by_action_and_actor" : "audit_by_action";
  return actor ? "audit_by_actor" : "audit_by_time";
}

/** Deleting this many rows takes SQLite one to two milliseconds, in which requests wait. */
const DELETED_AT_ONCE = 100;

export class SqlAuditStore implements AuditStore {
  constructor(private readonly database: SqlDatabase) {}

  recordAudit(entry: NewAuditEntry): Promise<void> {
    return this.database.write(() => addAudit(entry));
  }

  deleteAudit(before: number): Promise<boolean> {
    const sql = this.database.dialect.deleteFirst({ table: "audit", where: "at < ?", order: "at, id" });
    return this.database.write(function* () {
      return (yield* rowsOf(sql, before, DELETED_AT_ONCE)).length === DELETED_AT_ONCE;
    });
  }

  listAudit(query: AuditQuery): Awaitable<Page<AuditEntry>> {
    const { dialect } = this.database;
    return this.database.read(() => readPage(auditPage(query, dialect), query.limit, entryOf));
  }
}
