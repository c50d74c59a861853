/* How the rows of a table are selected, inserted and replaced in bulk. */

import { rowsOf, type Steps } from "./steps.ts";
import { jsonArray, jsonRows, type SqlValue } from "./values.ts";
import type { Dialect } from "./dialect.ts";
import type { SharedTables } from "./table-store.ts";
import type { NewRow, Row, Table } from "./tables.ts";

/** Selects all rows that are read in bulk, with every column as text. */
export function selectRows(table: Table, dialect: Dialect): string {
  const { name, where } = table;
  return `SELECT ${textsOf(table)} FROM ${name} WHERE ${where} ORDER BY ${orderOf(table, dialect)}`;
}

export function selectCount({ name, where }: Table): string {
  return `SELECT count(*) AS count FROM ${name} WHERE ${where}`;
}

function textsOf({ columns }: Pick<Table, "columns">): string {
  return Object.keys(columns)
    .map((column) => `CAST(${column} AS TEXT)`)
    .join(", ");
}

/**
 * Names the table of each column, because PostgreSQL would take the name alone for the selected text. Text is compared
 * byte by byte, as in SQLite.
 */
function orderOf({ name, columns, order }: Table, { bytewise }: Dialect): string {
  const inOrder = order.map((column) => {
    const ofTable = `${name}.${column}`;
    return columns[column] === "text" ? bytewise(ofTable) : ofTable;
  });
  return inOrder.join(", ");
}

/** Inserts the rows of a JSON array, which have these columns. An ORDER BY can follow. */
export function insertFromJson({ name, columns }: Pick<Table, "name" | "columns">, dialect: Dialect): string {
  const names = Object.keys(columns).join(", ");
  return `INSERT INTO ${name} AS stored (${names}) ${dialect.explicitIds}
    SELECT ${names} FROM ${dialect.tableOfJson(columns)} WHERE TRUE`;
}

/** The values of a row by their columns. */
export type FieldsOf<T> = T extends Table<infer Column> ? Readonly<Record<Column, string | null>> : never;

export function fieldsOf<Column extends string>(
  { columns }: Table<Column>,
  row: Row,
): Readonly<Record<Column, string | null>> {
  const fields: Record<string, string | null> = {};
  for (const [position, column] of Object.keys(columns).entries()) fields[column] = row[position] ?? null;
  // The object has every column.
  return fields as Record<Column, string | null>;
}

interface RowQuery<Column> {
  readonly by: Column;
  /** The values of `by` that are searched for. */
  readonly values: readonly SqlValue[];
  /** A further condition, in SQL of both databases. */
  readonly where?: string;
  /** Whether to lock the rows until the transaction ends. */
  readonly isLocked?: boolean;
}

/** Finds rows. It locks them in their order, so that no two transactions wait for each other. */
export function* findRows<Column extends string>(
  { dialect }: Pick<SharedTables, "dialect">,
  table: Table<Column>,
  { by, values, where = "TRUE", isLocked = false }: RowQuery<Column>,
): Steps<readonly FieldsOf<Table<Column>>[]> {
  const sql = `SELECT ${textsOf(table)} FROM ${table.name}
    WHERE ${dialect.isOneOf(by, "?", table.columns[by])} AND ${where}
    ORDER BY ${orderOf(table, dialect)}${isLocked ? dialect.lockRows("NO KEY UPDATE") : ""}`;
  const rows = yield* rowsOf<Record<string, string | null>>(sql, jsonArray(values));
  return rows.map((row) => fieldsOf(table, Object.values(row)));
}

/** Adds rows with all columns, in the order of the rows. */
export function* insertRows(
  table: Table,
  rows: readonly NewRow[],
  { dialect, onConflict = "" }: { readonly dialect: Dialect; readonly onConflict?: string },
): Steps<void> {
  yield* rowsOf(`${insertFromJson(table, dialect)} ORDER BY place ${onConflict}`, jsonRows(rows));
}

/** Adds rows with all columns, or replaces those that have the same value in the first column. */
export function* upsertRows(tables: SharedTables, table: Table, rows: readonly NewRow[]): Steps<void> {
  if (rows.length === 0) return;
  if (table.assignsIds) yield* lockIds(tables, table);
  const [key, ...others] = Object.keys(table.columns);
  const set = others.map((column) => `${column} = excluded.${column}`).join(", ");
  const onConflict = `ON CONFLICT (${key}) DO UPDATE SET ${set}`;
  yield* insertRows(table, rows, { dialect: tables.dialect, onConflict });
  yield* tables.onWrite(table, rows);
}

/** Adds rows without their identifiers, which the database assigns in the order of the rows. */
export function* appendRows(tables: SharedTables, table: Table, rows: readonly NewRow[]): Steps<void> {
  if (rows.length === 0) return;
  yield* lockIds(tables, table);
  const { id: _, ...columns } = table.columns;
  yield* insertRows({ ...table, columns }, rows, tables);
  yield* tables.onWrite({ ...table, assignsIds: false }, rows);
}

/** Keeps others from adding rows until the transaction ends, so that identifiers become visible in ascending order. */
export function* lockIds({ dialect }: Pick<SharedTables, "dialect">, { name }: Table): Steps<void> {
  yield* rowsOf(dialect.lockIds(name));
}

/** Sorts the fields of JSON objects, because PostgreSQL stores them in an order of its own. */
export function canonicalRowOf({ columns }: Table): (row: Row) => Row {
  const types = Object.values(columns);
  if (!types.includes("json")) return (row) => row;
  return (row) => row.map((text, i) => (types[i] === "json" ? canonicalJson(text) : text));
}

function canonicalJson(text: string | null): string {
  const fields: [string, unknown][] = Object.entries(JSON.parse(text ?? "{}"));
  return JSON.stringify(Object.fromEntries(fields.toSorted(([a], [b]) => (a < b ? -1 : 1))));
}
