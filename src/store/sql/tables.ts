/* The tables that both databases have. A test compares them with both schemas. */

import { LAST_BACKUP, PRIMARY_TIMELINE } from "../../domain/stored-values.ts";
import { AUDIT_ROWS, KEY_ROWS, OPERATOR_ORDER_ROWS, PET_ROWS } from "./rows.ts";
import type { SqlValue } from "./values.ts";
import type { ColumnType } from "./dialect.ts";

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

/** The values of a row as text, in the order of the columns. */
export type Row = readonly (string | null)[];
/** The values of a row to write. An integer may be text. */
export type NewRow = readonly (SqlValue | null)[];

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
    // The copy has no backup yet, and is on a server of its own.
    where: `name NOT IN ('${LAST_BACKUP}', '${PRIMARY_TIMELINE}')`,
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

/** Removes the rows that new tables have: the policy. */
export const EMPTY_TABLES = TABLES.map(({ name }) => `DELETE FROM ${name}`).join("; ");

/** The tables whose identifiers the database assigns. */
export const TABLES_WITH_IDS = TABLES.filter(({ assignsIds }) => assignsIds).map(({ name }) => name);
