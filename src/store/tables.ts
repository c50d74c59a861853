/** The tables that both databases have, for whoever copies all of them. A test compares them with both schemas. */
import type { NewAuditEntry } from "../domain/audit.ts";

/** `json` is text in SQLite and jsonb in PostgreSQL. */
export type ColumnType = "integer" | "text" | "json";

export interface Table {
  readonly name: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** An order of the rows that stays the same, for each database. */
  readonly order: { readonly sqlite: string; readonly postgres: string };
  /** Whether the database assigns `id` and remembers the last one, also after its row is deleted. */
  readonly assignsIds: boolean;
}

const COUNTS = {
  admitted: "integer",
  limited: "integer",
  banned: "integer",
  errors: "integer",
} as const;

/** A table comes after those that it refers to. What the database adds up from other tables is not among them. */
export const TABLES: readonly Table[] = [
  withIds("api_keys", {
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
  }),
  table("key_secrets", ["hash"], {
    hash: "text",
    key_id: "integer",
    valid_until: "integer",
    hint: "text",
    issued_at: "integer",
  }),
  withIds("pets", { name: "text", category_id: "integer", status: "text" }),
  withIds("orders", { pet_id: "integer", status: "text", created_at: "integer", key_id: "integer" }),
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
  table("server_settings", ["name"], { name: "text", value: "text" }),
  withIds("audit", {
    at: "integer",
    actor: "text",
    actor_name: "text",
    action: "text",
    target_kind: "text",
    target_id: "integer",
    values_before: "text",
    values_after: "text",
  }),
  table("usage_hours", ["start", "key_id"], {
    start: "integer",
    key_id: "integer",
    ...COUNTS,
    operations: "json",
  }),
  table("usage_days", ["start", "key_id"], {
    start: "integer",
    key_id: "integer",
    ...COUNTS,
    operations: "json",
  }),
  table("key_last_used", ["key_id"], { key_id: "integer", last_used_at: "integer" }),
  table("deprecated_use", ["operation", "key_id"], {
    operation: "text",
    key_id: "integer",
    last_used_at: "integer",
  }),
  table("usage_batches", ["writer"], { writer: "text", sequence: "integer", hour: "integer" }),
  table("imports", ["fingerprint"], {
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
  }),
];

function withIds(name: string, columns: Table["columns"]): Table {
  return { ...table(name, ["id"], { id: "integer", ...columns }), assignsIds: true };
}

function table(name: string, key: readonly string[], columns: Table["columns"]): Table {
  // As SQLite compares text: byte by byte.
  const inPostgres = key.map((column) => (columns[column] === "text" ? `${column} COLLATE "C"` : column));
  return {
    name,
    columns,
    order: { sqlite: key.join(", "), postgres: inPostgres.join(", ") },
    assignsIds: false,
  };
}

/** Tables whose identifiers the database assigns. */
export const TABLES_WITH_IDS = TABLES.filter(({ assignsIds }) => assignsIds).map(({ name }) => name);

/** Values as text, in the order of the columns. */
export type Row = readonly (string | null)[];

/** Numbers that are not rows: the last identifier of each table that assigns them, and the revision of the keys. */
export type Counters = Readonly<Record<string, bigint>>;
export const KEY_REVISION = "key_revision";

/** A database as it is at one moment. */
export interface TableReader {
  /** The number of rows. */
  count(table: Table): Promise<number>;
  /** In batches. */
  rows(table: Table): AsyncIterable<readonly Row[]>;
  counters(): Promise<Counters>;
  /** Whether anybody has written since the reader was opened. Undefined if the database cannot tell. */
  hasChanged?(): boolean;
  close(): Promise<void>;
}

/** A new database. Nobody else sees it before it is published. */
export interface TableWriter {
  /** What an interrupted copy recorded of its source; undefined in a new database. */
  readonly source: string | undefined;
  /** The rows of the table that were inserted before. */
  insertedRows(table: Table): Promise<number>;
  /** All of them or none, together with their number. */
  insert(table: Table, rows: readonly Row[]): Promise<void>;
  setCounters(counters: Counters): Promise<void>;
  /** Adds up what the database stores as sums of other rows. Called when all rows are inserted. */
  addSums(): Promise<void>;
  /** Reads what was inserted. */
  read(): Promise<TableReader>;
  /** Makes it the database of the environment, with an audit entry, in one step. Nothing can be written afterwards. */
  publish(entry: NewAuditEntry): Promise<void>;
  close(): Promise<void>;
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
