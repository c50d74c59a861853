import type {
  Actor,
  AuditAction,
  AuditedValues,
  AuditEntry,
  AuditQuery,
  AuditTarget,
  NewAuditEntry,
} from "../domain/audit.ts";
import type { OrderWithKey } from "../domain/corrections.ts";
import type { Page, PetQuery } from "../domain/ports.ts";
import type { Order, OrderStatus, Pet, PetStatus } from "../domain/resources.ts";
import {
  DEPRECATED_OPERATIONS,
  type KeyCounts,
  OPERATION_IDS,
  type OperationCounts,
  type RequestCounts,
  type UsageRow,
} from "../domain/usage-history.ts";

/*
 * Rows as both databases return them, and the domain objects they become. Aliases are quoted because PostgreSQL folds
 * unquoted names to lower case.
 */

export interface PetRow {
  readonly id: bigint;
  readonly name: string;
  readonly categoryId: bigint;
  readonly status: PetStatus | null;
}

export const PET_COLUMNS = `id, name, category_id AS "categoryId", status`;

/** A status that is null in the row is absent from the pet. */
export function petOf(row: PetRow): Pet {
  return hasStatus(row) ? row : { id: row.id, name: row.name, categoryId: row.categoryId };
}

function hasStatus(row: PetRow): row is PetRow & { readonly status: PetStatus } {
  return row.status !== null;
}

export interface OrderRow {
  readonly id: bigint;
  readonly petId: bigint;
  readonly status: OrderStatus;
  readonly createdAt: bigint;
}

export const ORDER_COLUMNS = `id, pet_id AS "petId", status, created_at AS "createdAt"`;

export function orderOf({ id, petId, status, createdAt }: OrderRow): Order {
  return { id, petId, status, createdAt: new Date(Number(createdAt)).toISOString() };
}

/** The key is null where an earlier release recorded none. */
export type OrderWithKeyRow = OrderRow & { readonly keyId: bigint | null };

export const ORDER_WITH_KEY_COLUMNS = `${ORDER_COLUMNS}, key_id AS "keyId"`;

export function orderWithKeyOf(row: OrderWithKeyRow): OrderWithKey {
  return { ...orderOf(row), keyId: row.keyId === null ? null : Number(row.keyId) };
}

/** The identifiers that a query selects, from its cursor on. */
export function idsAfter({ ids = [], after }: PetQuery): readonly bigint[] {
  return after === undefined ? ids : ids.filter((id) => id > after);
}

/** Takes one row more than the limit where there is one: it shows that the page has a successor. */
export function pageOf<Row, T>(rows: Row[], limit: number, itemOf: (row: Row) => T): Page<T> {
  const hasMore = rows.length > limit;
  if (hasMore) rows.length = limit;
  return { items: rows.map(itemOf), hasMore };
}

/*
 * Rows of the audit trail as both databases return them, and the queries that both understand.
 */

export interface AuditRow {
  readonly id: bigint;
  readonly at: bigint;
  readonly actor: Actor["kind"];
  readonly actorName: string | null;
  readonly operator: string | null;
  readonly action: AuditAction;
  readonly targetKind: AuditTarget["kind"] | null;
  readonly targetId: bigint | null;
  /** JSON objects. */
  readonly valuesBefore: string | null;
  readonly valuesAfter: string | null;
}

const SELECT = `SELECT id, at, actor, actor_name AS "actorName", operator, action, target_kind AS "targetKind",
  target_id AS "targetId", values_before AS "valuesBefore", values_after AS "valuesAfter" FROM audit`;

export const INSERT_AUDIT = `INSERT INTO audit
  (at, actor, actor_name, operator, action, target_kind, target_id, values_before, values_after)`;

/** The values of INSERT_AUDIT, in their order. */
export function auditValues(entry: NewAuditEntry): (SqlValue | null)[] {
  const { at, actor, action, target, before, after } = entry;
  const { kind, name = null, operator = null } = actor;
  const changed = [target?.kind ?? null, target?.id ?? null, jsonOf(before), jsonOf(after)];
  return [at, kind, name, operator, action, ...changed];
}

function jsonOf(values: AuditedValues | undefined): string | null {
  return values === undefined ? null : JSON.stringify(values);
}

/** Columns that are null in the row are absent from the entry. */
export function auditEntryOf(row: AuditRow): AuditEntry {
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
 * The SQL of a page, newest first, and its values. Each combination of filters has its own text, so that it has its own
 * plan.
 */
export function auditPage(
  { action, actor, operator, target, since, until, before, limit }: AuditQuery,
  dialect: Dialect,
): SqlQuery {
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
  const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  const from = `${SELECT}${dialect.indexedBy(indexOf({ target, operator, action, actor }))}`;
  // One row more than the page: it shows that the page has a successor. SQLite plans by the value of a bare LIMIT.
  return { sql: `${from}${where} ORDER BY at DESC, id DESC LIMIT +${add(limit + 1)}`, values: values.all };
}

/** A target and an operator have few entries; the other indexes have no entry that the filters would skip. */
function indexOf({
  target,
  operator,
  action,
  actor,
}: { [F in "target" | "operator" | "action" | "actor"]: AuditQuery[F] | undefined }): string {
  if (target) return "audit_by_target";
  if (operator) return "audit_by_operator";
  if (action) return actor ? "audit_by_action_and_actor" : "audit_by_action";
  return actor ? "audit_by_actor" : "audit_by_time";
}

/*
 * Both databases have one row per key and interval. The counts of the operations are in one column, as JSON: a sum over
 * all keys reads a third of the rows that a row per operation would take, and adding to one key changes one row.
 */

/** Admitted requests and errors by operation: `{"listPets":[12,1]}`. */
type StoredOperations = Readonly<Record<string, readonly [admitted: number, errors: number] | undefined>>;

export interface StoredCounts extends RequestCounts {
  readonly start: number;
  readonly operations: string;
}

/** The deprecated operations that the key has called. */
export function deprecatedIn({ byOperation }: KeyCounts): readonly string[] {
  return DEPRECATED_OPERATIONS.filter((id) => byOperation.some(({ operation }) => operation === id));
}

export function encodeOperations(byOperation: readonly OperationCounts[]): string {
  const entries = byOperation.map(({ operation, admitted, errors }) => [operation, [admitted, errors]]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** The stored counts with those of the key added. */
export function addOperations(stored: string, { byOperation }: KeyCounts): string {
  const sums: Record<string, readonly [number, number] | undefined> = { ...parse(stored) };
  for (const { operation, admitted, errors } of byOperation) {
    const [storedAdmitted, storedErrors] = sums[operation] ?? [0, 0];
    sums[operation] = [storedAdmitted + admitted, storedErrors + errors];
  }
  return JSON.stringify(sums);
}

/** One row per operation; the requests that belong to none of them come last. */
export function usageRowsOf(keyId: number, stored: StoredCounts): UsageRow[] {
  const { start } = stored;
  const operations = parse(stored.operations);
  const rows: UsageRow[] = [];
  let { admitted, errors } = stored;
  for (const operation of OPERATION_IDS) {
    const counts = operations[operation];
    if (counts === undefined) continue;
    rows.push({ keyId, start, operation, admitted: counts[0], limited: 0, banned: 0, errors: counts[1] });
    admitted -= counts[0];
    errors -= counts[1];
  }
  const { limited, banned } = stored;
  if (admitted + limited + banned > 0) {
    rows.push({ keyId, start, operation: "none", admitted, limited, banned, errors });
  }
  return rows;
}

/** What this release or another one has written. */
function parse(text: string): StoredOperations {
  return JSON.parse(text);
}

/** What differs between the databases in SQL that both stores build from parts. */
export interface Dialect {
  /** The nth parameter. */
  parameter(n: number): string;
  /** Follows the name of the table, for a planner without statistics. */
  indexedBy(index: string): string;
  /** A list as the value of one parameter, and the condition that a column has one of its numbers. */
  list(numbers: readonly number[]): string;
  isOneOf(column: string, parameter: string): string;
  /** A column for an order that ignores the case of ASCII letters, and one for an order of bytes. */
  withoutCase(column: string): string;
  bytewise(column: string): string;
  /** Condition with a pattern of LIKE that ignores the case of ASCII letters; `\` escapes. */
  like(column: string, parameter: string): string;
  /** Condition with a pattern of classes, which is made by `pattern`. */
  matches(column: string, parameter: string): string;
  /** For each character what it can be: one character or two. `isPart`: whether other text may surround them. */
  pattern(characters: readonly (readonly string[])[], isPart: boolean): string;
  /** The labels of a key as rows of a table, whose column is `value`. */
  readonly labels: string;
}

export interface SqlQuery {
  readonly sql: string;
  readonly values: SqlValue[];
}

export type SqlValue = string | number | bigint;

/** Collects the values of a statement while its text is built. */
export class SqlValues {
  readonly all: SqlValue[] = [];

  constructor(readonly dialect: Dialect) {}

  /** Returns the parameter that stands for the value. */
  add(value: SqlValue): string {
    return this.dialect.parameter(this.all.push(value));
  }

  isOneOf(column: string, numbers: readonly number[]): string {
    return this.dialect.isOneOf(column, this.add(this.dialect.list(numbers)));
  }

  /** Whether a column is the text, in upper or lower case. */
  isText(column: string, text: string): string {
    return this.#compare(column, text, false);
  }

  /** Whether a column contains the text, in upper or lower case. */
  hasText(column: string, text: string): string {
    return this.#compare(column, text, true);
  }

  /** Databases without a locale know the case of ASCII letters only, so other letters are looked for in both cases. */
  #compare(column: string, text: string, isPart: boolean): string {
    const { dialect } = this;
    const characters = [...text].map(casesOf);
    if (characters.some(([first = "", second]) => first > "\x7f" && second !== undefined)) {
      return dialect.matches(column, this.add(dialect.pattern(characters, isPart)));
    }
    const escaped = text.replaceAll(/[\\%_]/g, (character) => `\\${character}`);
    return dialect.like(column, this.add(isPart ? `%${escaped}%` : escaped));
  }
}

/** The character, and the same in the other case if that is one character. */
function casesOf(character: string): readonly string[] {
  const others = [character.toLowerCase(), character.toUpperCase()];
  const other = others.find((each) => each !== character && [...each].length === 1);
  return other === undefined ? [character] : [character, other];
}

/** SQLite has no statistics, so that the index is given. */
export const SQLITE_DIALECT: Dialect = {
  parameter: (n) => `?${n}`,
  indexedBy: (index) => ` INDEXED BY ${index}`,
  list: (numbers) => JSON.stringify(numbers),
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  withoutCase: (column) => `${column} COLLATE NOCASE`,
  bytewise: (column) => column,
  like: (column, parameter) => `${column} LIKE ${parameter} ESCAPE '\\'`,
  matches: (column, parameter) => `${column} GLOB ${parameter}`,
  pattern(characters, isPart) {
    const classes = characters.map(globOf).join("");
    return isPart ? `*${classes}*` : classes;
  },
  labels: "json_each(labels)",
};

/** PostgreSQL finds the best index by itself. */
export const POSTGRES_DIALECT: Dialect = {
  parameter: (n) => `$${n}`,
  indexedBy: () => "",
  list: (numbers) => numbers.join(","),
  isOneOf: (column, parameter) => `${column} = ANY (string_to_array(${parameter}, ',')::int8[])`,
  withoutCase: (column) => `lower(${column} COLLATE "C")`,
  bytewise: (column) => `${column} COLLATE "C"`,
  like: (column, parameter) => `${column} COLLATE "C" ILIKE ${parameter}`,
  matches: (column, parameter) => `${column} COLLATE "C" ~ ${parameter}`,
  pattern(characters, isPart) {
    const classes = characters.map(regexOf).join("");
    return isPart ? classes : `^${classes}$`;
  },
  labels: "json_array_elements_text(labels::json) AS label (value)",
};

function globOf(cases: readonly string[]): string {
  const text = cases.join("");
  return cases.length > 1 || /[*?[]/.test(text) ? `[${text}]` : text;
}

/** Every ASCII character that is no letter and no digit can be escaped. */
function regexOf(cases: readonly string[]): string {
  const text = cases.join("");
  if (cases.length > 1) return `[${text}]`;
  return /[!-/:-@[-`{-~]/.test(text) ? `\\${text}` : text;
}
