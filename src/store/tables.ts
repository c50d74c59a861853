/*
 * The tables that both databases have, and how their rows are read and written in bulk. A test compares the tables with
 * both schemas.
 */

import type { NewAuditEntry } from "../domain/audit.ts";
import type { Quota } from "../domain/rate-limit.ts";
import { LAST_BACKUP, PRIMARY_TIMELINE } from "../domain/servers.ts";
import type { SchemaState } from "./migrations.ts";
import { AUDIT_ROWS, KEY_ROWS, OPERATOR_ORDER_ROWS, PET_ROWS } from "./rows.ts";
import {
  type ColumnType,
  type Dialect,
  jsonArray,
  jsonRows,
  rowsOf,
  type SqlDatabase,
  type SqlValue,
  type Steps,
} from "./statements.ts";

export interface Table<Column extends string = string> {
  readonly name: string;
  readonly columns: Readonly<Record<Column, ColumnType>>;
  /** A condition for the rows that are read in bulk, in SQL of both databases. */
  readonly where: string;
  /** The columns by which rows are sorted, in an order that no two rows share. */
  readonly order: readonly Column[];
  /** Whether the database assigns `id`, the first column, and remembers the last one even after its row is deleted. */
  readonly assignsIds: boolean;
}

export const API_KEYS = withIds("api_keys", {
  ...KEY_ROWS.columns,
  pardoned_at: "integer",
  revision: "integer",
  unban_revision: "integer",
  announced_expiry: "integer",
});

const KEY_SECRETS = table("key_secrets", ["key_id", "hash"], {
  hash: "text",
  key_id: "integer",
  valid_until: "integer",
  hint: "text",
  issued_at: "integer",
});

export const PETS = withIds("pets", PET_ROWS.columns);
export const ORDERS = withIds("orders", OPERATOR_ORDER_ROWS.columns);

/** The counts of one key in one interval. */
const USAGE_COLUMNS = {
  start: "integer",
  key_id: "integer",
  admitted: "integer",
  limited: "integer",
  banned: "integer",
  errors: "integer",
  operations: "json",
} as const;

/** The usage history by its interval. */
export const USAGE = {
  hour: table("usage_hours", ["start", "key_id"], USAGE_COLUMNS),
  day: table("usage_days", ["start", "key_id"], USAGE_COLUMNS),
};

export const KEY_LAST_USED = table("key_last_used", ["key_id"], {
  key_id: "integer",
  last_used_at: "integer",
});

export const DEPRECATED_USE = table("deprecated_use", ["operation", "key_id"], {
  operation: "text",
  key_id: "integer",
  last_used_at: "integer",
});

export const AUDIT = withIds("audit", AUDIT_ROWS.columns);

/** How far each import has come. */
export const IMPORTS = table("imports", ["fingerprint"], {
  fingerprint: "text",
  source: "text",
  options: "text",
  started_at: "integer",
  finished_at: "integer",
  rows_done: "integer",
  added: "integer",
  replaced: "integer",
  skipped: "integer",
  rejected: "integer",
  rejects_bytes: "integer",
});

/**
 * The tables that are read and written in bulk, each after those that it refers to. Sessions and codes of operators,
 * and what only running servers use, are not among them.
 */
export const TABLES: readonly Table[] = [
  API_KEYS,
  KEY_SECRETS,
  PETS,
  ORDERS,
  // The records are sorted by age, because SQLite deletes expired ones in the order in which they were inserted.
  table("attempts", ["created_at", "key_id", "operation", "idempotency_key"], {
    key_id: "integer",
    operation: "text",
    idempotency_key: "text",
    fingerprint: "text",
    resource_id: "integer",
    body: "text",
    created_at: "integer",
  }),
  {
    ...table("server_settings", ["name"], { name: "text", value: "text" }),
    // The copy has no backup yet, and is on a server of its own. Release 1.1.0 stored the secret of its servers here.
    where: `name NOT IN ('${LAST_BACKUP}', '${PRIMARY_TIMELINE}', 'server-secret')`,
  },
  table("plans", ["name"], { name: "text", per_minute: "integer", per_day: "integer" }),
  table("ban_rules", ["sole"], {
    sole: "integer",
    strikes: "integer",
    grace_ms: "integer",
    length_ms: "integer",
    max_length_ms: "integer",
  }),
  AUDIT,
  withIds("operators", {
    name: "text",
    role: "text",
    created_at: "integer",
    last_used_at: "integer",
    revoked_at: "integer",
    expires_at: "integer",
    subject: "text",
  }),
  table("operator_tokens", ["hash"], {
    hash: "text",
    operator_id: "integer",
    hint: "text",
    issued_at: "integer",
    replaced_at: "integer",
    valid_until: "integer",
  }),
  USAGE.hour,
  USAGE.day,
  KEY_LAST_USED,
  DEPRECATED_USE,
  table("usage_batches", ["writer"], { writer: "text", sequence: "integer", hour: "integer" }),
  IMPORTS,
  table("webhook", ["sole"], { sole: "integer", source: "text", position: "integer" }),
];

function withIds<Column extends string>(
  name: string,
  columns: Readonly<Record<Column, ColumnType>>,
): Table<Column | "id"> {
  return { ...table<Column | "id">(name, ["id"], { id: "integer", ...columns }), assignsIds: true };
}

function table<Column extends string>(
  name: string,
  order: readonly NoInfer<Column>[],
  columns: Readonly<Record<Column, ColumnType>>,
): Table<Column> {
  return { name, columns, order, where: "TRUE", assignsIds: false };
}

/** The tables whose identifiers the database assigns. */
export const TABLES_WITH_IDS = TABLES.filter(({ assignsIds }) => assignsIds).map(({ name }) => name);

/** Selects all rows that are read in bulk, with every column as text. Columns that are `lacking` are NULL. */
export function selectRows(table: Table, dialect: Dialect, lacking: ReadonlySet<string> = new Set()): string {
  const { name, where } = table;
  return `SELECT ${textsOf(table, lacking)} FROM ${name} WHERE ${where} ORDER BY ${orderOf(table, dialect)}`;
}

export function selectCount({ name, where }: Table): string {
  return `SELECT count(*) AS count FROM ${name} WHERE ${where}`;
}

function textsOf({ name, columns }: Table, lacking?: ReadonlySet<string>): string {
  return Object.keys(columns)
    .map((column) => `CAST(${lacking?.has(`${name}.${column}`) ? "NULL" : column} AS TEXT)`)
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

/** Inserts the given rows, which have these columns. An ORDER BY can follow. */
export function insertGiven({ name, columns }: Pick<Table, "name" | "columns">, dialect: Dialect): string {
  const names = Object.keys(columns).join(", ");
  return `INSERT INTO ${name} AS stored (${names}) ${dialect.explicitIds}
    SELECT ${names} FROM ${dialect.given(columns)} WHERE TRUE`;
}

/** The values of a row as text, in the order of the columns. */
export type Row = readonly (string | null)[];
/** The values of a row to write. An integer may be text. */
export type NewRow = readonly (SqlValue | null)[];

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

/**
 * The numbers that are outside of rows: the last identifier of each table that assigns them, and the revision of the
 * keys.
 */
export type Counters = Readonly<Record<string, bigint>>;
export const KEY_REVISION = "key_revision";

/** Quotas by the key. */
export type KeyQuotas = readonly (readonly [number, Quota])[];

/** A database as it is at one moment. */
export interface TableReader extends AsyncDisposable {
  /** Counts the rows of a table. */
  count(table: Table): Promise<number>;
  /** Reads the rows in batches. Several tables can be read at the same time, each of them once. */
  rows(table: Table): AsyncIterable<readonly Row[]>;
  counters(): Promise<Counters>;
  /** Reads the quotas of keys, if the database has them. */
  quotas?(): Promise<KeyQuotas>;
  /** Throws if what was read is not the latest state any more, as far as the database can tell. It is the last call. */
  confirm(): Promise<void>;
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

/**
 * Writes in short transactions while servers write to the same tables. They do not wait for the disk: after a power
 * failure, all transactions since some moment may be missing.
 */
export interface SharedTables extends AsyncDisposable, Pick<SqlDatabase, "dialect" | "write"> {
  /** Storing this many rows takes a few milliseconds, in which the writes of servers wait. */
  readonly rowsPerTransaction: number;
  /** Runs after each write, in its transaction. */
  onWrite(table: Table, rows: readonly NewRow[]): Steps<void>;
  /** Makes later transactions, and with them all earlier ones, durable when they resolve. */
  makeDurable(): Promise<void>;
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
  yield* rowsOf(`${insertGiven(table, dialect)} ORDER BY place ${onConflict}`, jsonRows(rows));
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

/** A new database, which nobody else sees before it is published. */
export interface NewTables extends AsyncDisposable {
  /** Adds all of these rows or none. They have all columns. */
  insert(table: Table, rows: readonly NewRow[]): Promise<void>;
  /** Adds the quotas of keys, or replaces them, if the database has them. */
  putQuotas?(quotas: KeyQuotas): Promise<void>;
  /** Sets the counters after all rows are inserted. */
  complete(counters: Counters): Promise<void>;
  /** Reads the rows that were inserted. */
  read(): Promise<TableReader>;
  /**
   * Makes this the database of the environment in one step. Nothing can be written afterwards. Throws OutcomeUnknown if
   * it may have been done without a response.
   */
  publish(publication: Publication): Promise<void>;
}

export interface Publication {
  /** The entry for the audit trail. */
  readonly entry?: NewAuditEntry | undefined;
  /** The name that the present database gets; undefined if there is none. */
  readonly replaced?: string | undefined;
}

/** The database of one environment, which may not exist yet. */
export interface TableStore {
  exists(): Promise<boolean>;
  /** Reads the state of the tables, which exist, and changes nothing. */
  schema(): Promise<SchemaState>;
  /** Reads the database. Unless it was opened for that, tables of an earlier release are an error. */
  read(): Promise<TableReader>;
  /** Opens the database for shared writes, after creating it if it is missing. */
  share(): Promise<SharedTables>;
  /** Creates a new database. What an interrupted call has left is discarded. */
  create(): Promise<NewTables>;
  /** Records the time of a backup for the metrics. It waits for no standby. */
  recordBackup(at: number): Promise<void>;
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
