/**
 * The tables that both databases have, and how their rows are read and written in bulk. A test compares the tables with
 * both schemas.
 */
import type { NewAuditEntry } from "../domain/audit.ts";
import { SERVER_SECRET } from "../domain/operators.ts";

/** `json` is text in SQLite and jsonb in PostgreSQL. */
type ColumnType = "integer" | "text" | "json";

export interface Table<Column extends string = string> {
  readonly name: string;
  readonly columns: Readonly<Record<Column, ColumnType>>;
  /** Which rows are read in bulk, in SQL of both databases; by default all. */
  readonly where?: string;
  /** An order of the rows that stays the same, for each database. */
  readonly order: { readonly sqlite: string; readonly postgres: string };
  /** Whether the database assigns `id`, the first column, and remembers the last one, also after its row is deleted. */
  readonly assignsIds: boolean;
}

export const API_KEYS = withIds("api_keys", {
  name: "text",
  plan: "text",
  per_minute: "integer",
  per_day: "integer",
  created_at: "integer",
  expires_at: "integer",
  revoked_at: "integer",
  pardoned_at: "integer",
  revision: "integer",
  unban_revision: "integer",
  owner: "text",
  notes: "text",
  labels: "text",
  access: "text",
  disabled_at: "integer",
});

export const KEY_SECRETS = table("key_secrets", ["key_id", "hash"], {
  hash: "text",
  key_id: "integer",
  valid_until: "integer",
  hint: "text",
  issued_at: "integer",
});

export const PETS = withIds("pets", { name: "text", category_id: "integer", status: "text" });

export const ORDERS = withIds("orders", {
  pet_id: "integer",
  status: "text",
  created_at: "integer",
  key_id: "integer",
  closed_at: "integer",
});

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

/** A table comes after those that it refers to. Sums of other tables and sessions of operators are not among them. */
export const TABLES: readonly Table[] = [
  API_KEYS,
  KEY_SECRETS,
  PETS,
  ORDERS,
  // By age, because SQLite deletes expired ones in the order in which they were inserted.
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
    // Servers of the copy make a secret of their own.
    where: `name <> '${SERVER_SECRET}'`,
  },
  withIds("audit", {
    at: "integer",
    actor: "text",
    actor_name: "text",
    action: "text",
    target_kind: "text",
    target_id: "integer",
    values_before: "text",
    values_after: "text",
    operator: "text",
  }),
  withIds("operators", {
    name: "text",
    role: "text",
    created_at: "integer",
    last_used_at: "integer",
    revoked_at: "integer",
  }),
  table("operator_tokens", ["hash"], {
    hash: "text",
    operator_id: "integer",
    hint: "text",
    issued_at: "integer",
    replaced_at: "integer",
  }),
  USAGE.hour,
  USAGE.day,
  table("key_last_used", ["key_id"], { key_id: "integer", last_used_at: "integer" }),
  table("deprecated_use", ["operation", "key_id"], {
    operation: "text",
    key_id: "integer",
    last_used_at: "integer",
  }),
  table("usage_batches", ["writer"], { writer: "text", sequence: "integer", hour: "integer" }),
  IMPORTS,
];

/** In a copy that is not published: the rows of each table that were inserted. */
export const COPY_PROGRESS = table("copy_progress", ["table_name"], {
  table_name: "text",
  inserted: "integer",
});

/** Beside it, what the copy was made of. For both databases. */
export const CREATE_COPY_PROGRESS = [
  "CREATE TABLE IF NOT EXISTS copy_progress (table_name TEXT PRIMARY KEY, inserted BIGINT NOT NULL)",
  "CREATE TABLE IF NOT EXISTS copy_source (source TEXT NOT NULL)",
];

function withIds<Column extends string>(
  name: string,
  columns: Readonly<Record<Column, ColumnType>>,
): Table<Column | "id"> {
  return { ...table<Column | "id">(name, ["id"], { id: "integer", ...columns }), assignsIds: true };
}

function table<Column extends string>(
  name: string,
  key: readonly NoInfer<Column>[],
  columns: Readonly<Record<Column, ColumnType>>,
): Table<Column> {
  // With the table: PostgreSQL would take the name alone for the selected text. As SQLite compares text: byte by byte.
  const inPostgres = key.map(
    (column) => `${name}.${column}${columns[column] === "text" ? ' COLLATE "C"' : ""}`,
  );
  return {
    name,
    columns,
    order: { sqlite: key.map((column) => `${name}.${column}`).join(", "), postgres: inPostgres.join(", ") },
    assignsIds: false,
  };
}

/** Tables whose identifiers the database assigns. */
export const TABLES_WITH_IDS = TABLES.filter(({ assignsIds }) => assignsIds).map(({ name }) => name);

/** What a bulk read selects from. */
export function rowsOf({ name, where }: Table): string {
  return where === undefined ? name : `${name} WHERE ${where}`;
}

/** Values as text, in the order of the columns. */
export type Row = readonly (string | null)[];
/** Values to write; an integer may be text. */
export type NewRow = readonly (string | number | bigint | null)[];

/** The values of a row by their columns. */
export function fieldsOf<Column extends string>(
  { columns }: Table<Column>,
  row: Row,
): Readonly<Record<Column, string | null>> {
  const fields: Record<string, string | null> = {};
  for (const [position, column] of Object.keys(columns).entries()) fields[column] = row[position] ?? null;
  // It has every column.
  return fields as Record<Column, string | null>;
}

/** Numbers that are not rows: the last identifier of each table that assigns them, and the revision of the keys. */
export type Counters = Readonly<Record<string, bigint>>;
export const KEY_REVISION = "key_revision";

/** A database as it is at one moment. */
export interface TableReader {
  /** The number of rows. */
  count(table: Table): Promise<number>;
  /** In batches. Several tables can be read at the same time, each once. */
  rows(table: Table): AsyncIterable<readonly Row[]>;
  counters(): Promise<Counters>;
  /** Whether anybody has written since the reader was opened. Undefined if the database cannot tell. */
  hasChanged?(): boolean;
  close(): Promise<void>;
}

export interface RowQuery {
  readonly by: string;
  /** Those that `by` may have. */
  readonly values: readonly (string | number | bigint)[];
  /** A further condition, in SQL of both databases. */
  readonly where?: string;
  /** Whether the rows stay as they are until the end of the transaction. */
  readonly isLocked?: boolean;
}

export interface TableTransaction {
  find(table: Table, query: RowQuery): Promise<readonly Row[]>;
  /** Adds rows with all columns. */
  insert(table: Table, rows: readonly NewRow[]): Promise<void>;
  /** Adds rows without their identifiers, which the database assigns in the order of the rows. */
  append(table: Table, rows: readonly NewRow[]): Promise<void>;
  /** Adds rows with all columns, or replaces those that have the same value in the first column. */
  put(table: Table, rows: readonly NewRow[]): Promise<void>;
  /** Nobody else adds a row until the end of the transaction: identifiers become visible in ascending order. */
  lockIds(table: Table): Promise<void>;
  addAudit(entry: NewAuditEntry): Promise<void>;
}

export interface TableWriter {
  /** All of it or nothing. `work` awaits nothing but the transaction. */
  transaction<T>(work: (tx: TableTransaction) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/**
 * Short transactions beside servers that write to the same tables. They do not wait for the disk: after a power failure
 * the last ones may be missing, all from some moment on.
 */
export interface SharedTables extends TableWriter {
  /** So many rows are stored in a few milliseconds, for which the writes of servers wait. */
  readonly rowsPerTransaction: number;
  /** The transactions from now on, and all before them, are durable when they resolve. */
  makeDurable(): Promise<void>;
}

/** A new database. Nobody else sees it before it is published. */
export interface NewTables extends TableWriter {
  setCounters(counters: Counters): Promise<void>;
  /** Adds up what the database stores as sums of other rows. Called when all rows are inserted. */
  addSums(): Promise<void>;
  /** Reads what was inserted. */
  read(): Promise<TableReader>;
  /** Makes it the database of the environment, with an audit entry, in one step. Nothing can be written afterwards. */
  publish(entry: NewAuditEntry): Promise<void>;
}

/** The database of one environment, which may not exist yet. */
export interface TableStore {
  exists(): Promise<boolean>;
  /** Migrates it first if an earlier release made it. */
  read(): Promise<TableReader>;
  /** Creates or migrates it first. */
  share(): Promise<SharedTables>;
  /** Continues an interrupted copy of the same source, or begins a new one and discards another. */
  create(source: string): Promise<NewTables>;
}

/** JSON with its fields in one order: PostgreSQL stores them in an order of its own. */
export function canonicalJson(text: string): string {
  return JSON.stringify(sorted(JSON.parse(text)));
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The positions of the columns that hold JSON. */
export function jsonColumns({ columns }: Table): number[] {
  return Object.values(columns).flatMap((type, position) => (type === "json" ? position : []));
}
