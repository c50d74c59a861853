import type { AuditEntry, AuditFilters, AuditQuery, AuditRow, NewAuditEntry } from "../domain/audit.ts";
import type { AuditStore } from "../domain/ports/audit.ts";
import type { Page } from "../domain/pages.ts";
import { MAX_ROWS_SEARCHED } from "../domain/size-limits.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { AUDIT_ROWS } from "./sql/rows.ts";
import {
  type BoundedPage,
  readBoundedPage,
  requireRow,
  rowsOf,
  type SqlDatabase,
  type Statements,
  type Steps,
} from "./sql/steps.ts";
import { SqlValues, type SqlValue } from "./sql/values.ts";
import type { Dialect } from "./sql/dialect.ts";

const SELECT = `SELECT ${AUDIT_ROWS.selected}`;
const COLUMNS = Object.keys(AUDIT_ROWS.writtenColumns);
const INSERT = `INSERT INTO audit (${COLUMNS.join(", ")}) VALUES (${COLUMNS.map(() => "?").join(", ")}) RETURNING id`;

/** Adds an entry in the transaction of the change that it describes. */
export function* addAudit(entry: NewAuditEntry): Steps<AuditEntry> {
  const values = AUDIT_ROWS.valuesOf(rowOf(entry));
  return addedEntry(entry, yield { sql: INSERT, values, audited: entry });
}

function rowOf({ at, actor, action, target, before, after }: NewAuditEntry): Omit<AuditRow, "id"> {
  return {
    at,
    actor: actor.kind,
    actorName: actor.name,
    operator: actor.operator,
    action,
    targetKind: target?.kind,
    targetId: target?.id,
    valuesBefore: before,
    valuesAfter: after,
  };
}

function addedEntry(entry: NewAuditEntry, rows: readonly unknown[]): AuditEntry {
  // The row has the column that the statement returns.
  const [row] = rows as readonly Pick<AuditEntry, "id">[];
  return { ...entry, id: requireRow(row).id };
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
    if (audited !== undefined) entries.push(addedEntry(audited, rows));
    step = steps.next(rows);
  }
  return step.value;
}

/** Makes the transactions of a database report their audit entries. */
export function auditedDatabase(database: SqlDatabase, onAudit: OnAudit | undefined): SqlDatabase {
  return { ...database, write: (statements) => reportAudit(statements, database.write, onAudit) };
}

/** Columns that are null in the row are absent from the entry. */
function entryOf(row: Readonly<Record<string, unknown>>): AuditEntry {
  const { id, at, action, actor: kind, actorName: name, operator, ...rest } = AUDIT_ROWS.workingObjectOf(row);
  const { targetKind, targetId, valuesBefore, valuesAfter } = rest;
  return {
    id,
    at,
    actor: { kind, ...(name !== undefined && { name }), ...(operator !== undefined && { operator }) },
    action,
    ...(targetKind && targetId !== undefined && { target: { kind: targetKind, id: targetId } }),
    ...(valuesBefore && { before: valuesBefore }),
    ...(valuesAfter && { after: valuesAfter }),
  };
}

/**
 * Selects a page of entries, newest first, or those that follow an entry. Each combination of filters has its own text,
 * so that it gets its own plan. Conditions outside the index select among the entries that it finds, up to a bound.
 */
export function auditPage(query: AuditQuery, dialect: Dialect): BoundedPage {
  const { after, limit } = query;
  const values = new SqlValues(dialect);
  const add = (value: SqlValue) => values.add(value);
  const equals = (columns: Columns) => columns.map(([column, value]) => `${column} = ${add(value)}`);
  const index = after === undefined ? indexOf(query) : BY_ID;
  const columns = index.filters.flatMap((name) => COLUMNS_OF[name](query));
  const last = dialect.comparesRows ? columns.at(-1) : undefined;
  const indexed = equals(last === undefined ? columns : columns.slice(0, -1));
  indexed.push(...(after === undefined ? timesOf(query, add, last) : [`id > ${add(after)}`]));
  const given = [...values.all];
  const others = equals(
    FILTERS.filter((name) => !index.filters.includes(name)).flatMap((name) => COLUMNS_OF[name](query)),
  );
  if (after !== undefined) others.push(...timesOf(query, add));
  const where = indexed.length === 0 ? "" : ` WHERE ${indexed.join(" AND ")}`;
  const from = after === undefined ? `audit${dialect.indexedBy(index.name)}` : "audit";
  const newestFirst = [...(last === undefined ? [] : last.slice(0, 1)), "at", "id"];
  const order = after === undefined ? newestFirst.map((column) => `${column} DESC`).join(", ") : "id";
  // A page selects one row more than it has, to see whether another follows. SQLite plans by the value of a bare LIMIT.
  const limited = () => `LIMIT +${add(limit + 1)}`;
  if (others.length === 0) {
    const sql = `${SELECT} FROM ${from}${where} ORDER BY ${order} ${limited()}`;
    return { page: { sql, values: values.all, isVaried: true }, lastRead: undefined };
  }
  const rows = (columns: string) => `SELECT ${columns} FROM ${from}${where} ORDER BY ${order} LIMIT `;
  const sql = `${SELECT} FROM (${rows("*")}${MAX_ROWS_SEARCHED}) AS audit
    WHERE ${others.join(" AND ")} ORDER BY ${order} ${limited()}`;
  return {
    page: { sql, values: values.all, isVaried: true },
    lastRead: { sql: `${rows("id")}1 OFFSET ${MAX_ROWS_SEARCHED - 1}`, values: given, isVaried: true },
  };
}

/** Adds a value, and returns its parameter. */
type Add = (value: SqlValue) => string;

/**
 * Conditions on the times of entries. With the column before the time in the index, in which all entries have the same
 * value, PostgreSQL is given pairs: with the condition `actor = ?` it may walk all entries by time and filter them. If
 * ANALYZE has seen no other actor, that reads the whole table. As for pages of pets, only the index that begins with
 * the column fits the pairs and the order.
 */
function timesOf({ since, until, before }: AuditQuery, add: Add, last?: Columns[number]): readonly string[] {
  const [column, value] = last === undefined ? [] : [last[0], add(last[1])];
  const compared = (operator: string, columns: Readonly<Record<string, string>>) => {
    const pairs = Object.entries(column === undefined ? columns : { [column]: value, ...columns });
    const [names, given] = [pairs.map(([name]) => name), pairs.map(([, each]) => each)];
    return `(${names.join(", ")}) ${operator} (${given.join(", ")})`;
  };
  const conditions: string[] = [];
  if (column !== undefined) conditions.push(`${column} >= ${value}`);
  if (since !== undefined) conditions.push(compared(">=", { at: add(since) }));
  if (before !== undefined) {
    const id = add(before);
    conditions.push(compared("<", { at: `(SELECT at FROM audit WHERE id = ${id})`, id }));
    if (until !== undefined) conditions.push(`at < ${add(until)}`);
  } else if (until !== undefined) conditions.push(compared("<", { at: add(until) }));
  else if (column !== undefined) conditions.push(`${column} <= ${value}`);
  return conditions;
}

const FILTERS = ["target", "action", "actor", "operator"] as const;

type Columns = readonly (readonly [column: string, value: SqlValue])[];

const COLUMNS_OF: Readonly<Record<(typeof FILTERS)[number], (query: AuditQuery) => Columns>> = {
  target({ target }) {
    if (target === undefined) return [];
    return [
      ["target_kind", target.kind],
      ["target_id", target.id],
    ];
  },
  action: ({ action }) => (action === undefined ? [] : [["action", action]]),
  actor: ({ actor }) => (actor === undefined ? [] : [["actor", actor]]),
  operator: ({ operator }) => (operator === undefined ? [] : [["operator", operator]]),
};

interface AuditIndex {
  readonly name: string;
  /** The filters whose columns precede the time. */
  readonly filters: readonly (typeof FILTERS)[number][];
}

/** The indexes, of which a query reads the first that has only filters of the query. */
const INDEXES: readonly AuditIndex[] = [
  { name: "audit_by_target", filters: ["target"] },
  { name: "audit_by_operator_and_action", filters: ["operator", "action"] },
  { name: "audit_by_operator", filters: ["operator"] },
  { name: "audit_by_action_and_actor", filters: ["action", "actor"] },
  { name: "audit_by_action", filters: ["action"] },
  { name: "audit_by_actor", filters: ["actor"] },
  { name: "audit_by_time", filters: [] },
];
/** The order of the entries that follow another one. */
const BY_ID: AuditIndex = { name: "", filters: [] };

function indexOf(query: AuditQuery): AuditIndex {
  return INDEXES.find(({ filters }) => filters.every((name) => query[name] !== undefined)) ?? BY_ID;
}

/** Deleting this many rows takes SQLite one to two milliseconds, in which requests wait. */
const DELETED_AT_ONCE = 100;

export class SqlAuditStore implements AuditStore {
  constructor(private readonly database: SqlDatabase) {}

  async recordAudit(entry: NewAuditEntry): Promise<void> {
    await this.database.write(() => addAudit(entry));
  }

  recordAuditUnless(isFound: AuditFilters, entry: NewAuditEntry): Promise<boolean> {
    const { dialect } = this.database;
    return this.database.write(function* () {
      // A transaction with an entry holds this lock until its commit has ended. The next statement sees its entry.
      yield { sql: dialect.lockIds("audit"), values: [] };
      const found = yield* readBoundedPage(auditPage({ ...isFound, limit: 1 }, dialect), 1, entryOf);
      if (found.items.length > 0) return false;
      yield* addAudit(entry);
      return true;
    });
  }

  deleteAudit(before: number): Promise<boolean> {
    const sql = this.database.dialect.deleteFirst({ table: "audit", where: "at < ?", order: "at, id" });
    return this.database.write(function* () {
      return (yield* rowsOf(sql, before, DELETED_AT_ONCE)).length === DELETED_AT_ONCE;
    });
  }

  listAudit(query: AuditQuery): Awaitable<Page<AuditEntry>> {
    const { dialect } = this.database;
    return this.database.read(() => readBoundedPage(auditPage(query, dialect), query.limit, entryOf));
  }
}
