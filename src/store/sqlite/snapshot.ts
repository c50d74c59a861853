/* Copies of whole databases: making them, checking them, and comparing them with a later state. */

import { existsSync } from "node:fs";
import type { NewAuditEntry } from "../../domain/audit.ts";
import { LAST_BACKUP_SETTING } from "../../domain/servers.ts";
import { countOf } from "../../text/formatting.ts";
import { withoutLinks } from "../../runtime/own-files.ts";
import { addAudit } from "../audit.ts";
import { type AppliedStep, type SchemaState, schemaState } from "../migrations.ts";
import { SAVE_SETTING } from "../settings.ts";
import type { API_KEYS } from "../tables.ts";
import { Connection, createDatabaseFile, failureOf, keepLogFiles, openFile } from "./connection.ts";
import { SQLITE_MIGRATIONS, rejectForeignDatabase, stepsOf, versionOf } from "./migrations.ts";

const BUSY_TIMEOUT_MS = 5_000;
const CACHE_KIB = 16 * 1024;

export interface DatabaseFacts {
  readonly schemaVersion: number;
  /** The steps of its schema. */
  readonly steps: readonly AppliedStep[];
  /** The number of rows by table. */
  readonly rows: Readonly<Record<string, number>>;
  /** Descriptions of damage; empty for a sound database. */
  readonly problems: readonly string[];
}

/**
 * Copies a database as it is at one moment, while servers write to it. The copy has the schema of the original, because
 * nothing is migrated. The caller waits until the copy is on the disk.
 */
export function copySnapshot(from: string, to: string): void {
  createDatabaseFile(to);
  withDatabase(from, (connection) => connection.value("VACUUM INTO ?", withoutLinks(to)), "copy");
  withDatabase(to, removeSecrets);
}

/** Removes sessions, which are not meant for the readers of the copy, and what only running servers use. */
function removeSecrets(connection: Connection): void {
  if (!hasTable(connection, "operators")) return;
  connection.exec("PRAGMA secure_delete = ON");
  connection.transaction(() => {
    connection.exec("DELETE FROM operator_sessions");
    connection.exec("DELETE FROM sign_in_codes");
    // Release 1.1.0 stored the secret here.
    connection.exec("DELETE FROM server_settings WHERE name = 'server-secret'");
    // Servers of release 1.2.0 have the one in the table.
    for (const table of ["server_secret", "servers", "server_questions"])
      if (hasTable(connection, table)) connection.exec(`DELETE FROM ${table}`);
  });
}

/** Records the time of a backup in the database that was copied. Its first releases have no settings. */
export function recordBackup(path: string, at: number): void {
  const record = (connection: Connection) =>
    hasTable(connection, "server_settings") &&
    connection.value(SAVE_SETTING, LAST_BACKUP_SETTING, String(at));
  withDatabase(path, record, "write to");
}

/** Whether a database has a table. Databases of earlier releases lack some. */
function hasTable(connection: Connection, table: string, database = "main"): boolean {
  const sql = `SELECT 1 FROM ${database}.sqlite_schema WHERE name = ?`;
  return connection.value(sql, table) !== undefined;
}

/** Reads a whole database and checks it. Servers may be running on it. */
export function inspectDatabase(path: string): DatabaseFacts {
  return withDatabase(path, factsOf);
}

function factsOf(connection: Connection): DatabaseFacts {
  const problems = [...integrityProblems(connection), ...brokenReferences(connection)];
  const rows = problems.length > 0 ? {} : rowsByTable(connection);
  return { schemaVersion: versionOf(connection), steps: stepsOf(connection), rows, problems };
}

/** Reads the state of the tables of a store, and nothing else. */
export function inspectSchema(path: string): SchemaState {
  return withDatabase(path, (connection) => schemaState(stepsOf(connection), SQLITE_MIGRATIONS));
}

/** Inspects the database of the pets, orders and keys. Returns undefined if it does not exist. */
export function inspectStore(path: string) {
  if (!existsSync(path)) return undefined;
  return withDatabase(path, (connection) => {
    const facts = factsOf(connection);
    const newest = facts.rows["api_keys"] && connection.value("SELECT max(created_at) FROM api_keys");
    return {
      ...facts,
      schema: schemaState(facts.steps, SQLITE_MIGRATIONS),
      /** The time of the newest key, in milliseconds since the epoch. */
      newestTime: typeof newest === "bigint" ? Number(newest) : undefined,
    };
  });
}

/** Runs `work` on a database that exists, without changing its schema or its journal. Errors name the file. */
function withDatabase<T>(
  path: string,
  work: (connection: Connection) => T,
  task: "read" | "copy" | "write to" = "read",
): T {
  try {
    const database = openFile(path);
    if (existsSync(`${path}-shm`)) keepLogFiles(database);
    const connection = new Connection(database);
    try {
      connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      connection.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
      rejectForeignDatabase(connection);
      return work(connection);
    } finally {
      connection.close();
    }
  } catch (error) {
    throw failureOf(`${task} the database`, path, error);
  }
}

const MAX_PROBLEMS = 10;

function integrityProblems(connection: Connection): string[] {
  const lines = connection.all<{ integrity_check: string }>(`PRAGMA integrity_check(${MAX_PROBLEMS})`);
  return lines[0]?.integrity_check === "ok" ? [] : lines.map(({ integrity_check }) => integrity_check);
}

function brokenReferences(connection: Connection): string[] {
  const broken = connection.all<{ table: string; parent: string; count: bigint }>(
    `SELECT "table", parent, count(*) AS count FROM pragma_foreign_key_check GROUP BY 1, 2`,
  );
  return broken.map(
    ({ table, parent, count }) =>
      `${countOf(Number(count), "row")} of ${table} ${count === 1n ? "refers" : "refer"} to missing rows of ${parent}`,
  );
}

function rowsByTable(connection: Connection): Record<string, number> {
  const tables = connection.all<{ name: string }>(
    `SELECT name FROM sqlite_schema
     WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'schema_migrations' ORDER BY name`,
  );
  const count = (table: string) => Number(connection.value(`SELECT count(*) FROM "${table}"`));
  return Object.fromEntries(tables.map(({ name }) => [name, count(name)]));
}

/** A number later than every time. */
const NEVER = "9223372036854775807";

/**
 * For each column of a key, the SQL condition that the later row allows less than the earlier one. It is null if the
 * column does not affect what a key allows. Every column is listed, so that a restore reports everything that it
 * undoes.
 */
const RESTRICTIONS = {
  id: null,
  name: null,
  plan: null,
  per_minute: null,
  per_day: null,
  created_at: null,
  expires_at: (earlier: string) => `later.expires_at < coalesce(${earlier}, ${NEVER})`,
  revoked_at: (earlier: string) => `later.revoked_at IS NOT NULL AND ${earlier} IS NULL`,
  pardoned_at: null,
  revision: null,
  unban_revision: null,
  owner: null,
  notes: null,
  labels: null,
  access: (earlier: string) => `later.access = 'read' AND ${earlier} IS NOT 'read'`,
  disabled_at: (earlier: string) => `later.disabled_at IS NOT NULL AND ${earlier} IS NULL`,
  announced_expiry: null,
} satisfies Readonly<Record<keyof typeof API_KEYS.columns, null | ((earlier: string) => string)>>;

/** The columns that can restrict a key. */
export type Restriction = {
  [Column in keyof typeof RESTRICTIONS]: (typeof RESTRICTIONS)[Column] extends null ? never : Column;
}[keyof typeof RESTRICTIONS];

interface RestrictedKey {
  readonly id: number;
  /** When the key expires, according to the later database. */
  readonly expiresAt: number | null;
}

/** How the keys in an earlier copy of a database differ from those in the later database. */
export interface KeyDifferences {
  /** Keys that were restricted later, so that the copy allows more. A revoked key appears under `revoked_at` only. */
  readonly restricted: Readonly<Record<Restriction, readonly RestrictedKey[]>>;
  /** Keys whose secrets were replaced later. The copy accepts the earlier secrets. */
  readonly rotated: readonly number[];
  /** Keys that were created later, so that the copy does not have them. */
  readonly created: readonly number[];
  /** The names of operators who were revoked, rotated, or got another role or an earlier expiry later. */
  readonly operators: readonly string[];
}

/**
 * Compares the keys of two databases. Keys that have expired in the copy allow nothing, so they are left out unless
 * they were revoked later.
 */
export function keyDifferences(earlier: string, later: string, now: number): KeyDifferences {
  return withDatabase(later, (connection) => {
    connection.value("ATTACH ? AS earlier", withoutLinks(earlier));
    const keys = "main.api_keys AS later JOIN earlier.api_keys AS earlier USING (id)";
    const isValid = `later.revoked_at IS NULL AND coalesce(earlier.expires_at, ${NEVER}) > ${now}`;
    const restricted = (column: Restriction) => {
      if (!hasColumn(connection, "main", column)) return [];
      const differs = RESTRICTIONS[column](
        hasColumn(connection, "earlier", column) ? `earlier.${column}` : "NULL",
      );
      const found = connection.all<{ id: bigint; expiresAt: bigint | null }>(
        `SELECT id, later.expires_at AS expiresAt FROM ${keys}
         WHERE ${differs} AND ${column === "revoked_at" ? "TRUE" : isValid} ORDER BY id`,
      );
      return found.map(({ id, expiresAt }) => ({
        id: Number(id),
        expiresAt: expiresAt === null ? null : Number(expiresAt),
      }));
    };
    return {
      restricted: {
        revoked_at: restricted("revoked_at"),
        access: restricted("access"),
        disabled_at: restricted("disabled_at"),
        expires_at: restricted("expires_at"),
      },
      rotated: idsOf(
        connection,
        `SELECT DISTINCT later.key_id AS id
         FROM main.key_secrets AS later JOIN earlier.key_secrets AS earlier USING (hash)
         WHERE later.valid_until < coalesce(earlier.valid_until, ${NEVER})
           AND later.key_id IN (SELECT id FROM ${keys} WHERE ${isValid})`,
      ),
      created: idsOf(
        connection,
        "SELECT id FROM main.api_keys WHERE id NOT IN (SELECT id FROM earlier.api_keys)",
      ),
      operators:
        hasTable(connection, "operators") && hasTable(connection, "operators", "earlier")
          ? changedOperators(connection)
          : [],
    };
  });
}

/** Whether the keys or operators of a database have a column. Databases of earlier releases lack some. */
function hasColumn(
  connection: Connection,
  database: "main" | "earlier",
  column: Restriction,
  table: "api_keys" | "operators" = "api_keys",
): boolean {
  const sql = "SELECT 1 FROM pragma_table_info(?, ?) WHERE name = ?";
  return connection.value(sql, table, database, column) !== undefined;
}

function changedOperators(connection: Connection): string[] {
  const expiry = (database: "main" | "earlier", name: string) =>
    hasColumn(connection, database, "expires_at", "operators") ? `${name}.expires_at` : "NULL";
  const rows = connection.all<{ name: string }>(`SELECT DISTINCT later.name FROM main.operators AS later
    JOIN earlier.operators AS earlier USING (id)
    JOIN earlier.operator_tokens AS token ON token.operator_id = id AND token.replaced_at IS NULL
    WHERE earlier.revoked_at IS NULL AND (later.revoked_at IS NOT NULL OR later.role <> earlier.role
      OR coalesce(${expiry("main", "later")}, ${NEVER}) < coalesce(${expiry("earlier", "earlier")}, ${NEVER})
      OR token.hash IN (SELECT hash FROM main.operator_tokens WHERE replaced_at IS NOT NULL)) ORDER BY 1`);
  return rows.map(({ name }) => name);
}

function idsOf(connection: Connection, sql: string): number[] {
  return connection.all<{ id: bigint }>(`${sql} ORDER BY 1`).map(({ id }) => Number(id));
}

/** How many identifiers a database has assigned so far. The number only grows, whatever the clock shows. */
export function assignedIds(path: string): number {
  return withDatabase(path, (connection) => Number(connection.value("SELECT sum(seq) FROM sqlite_sequence")));
}

/** Makes the earlier copy continue after the identifiers that the later database has assigned. */
export function skipAssignedIds(earlier: string, later: string): void {
  withDatabase(earlier, (connection) => {
    connection.value("ATTACH ? AS later", withoutLinks(later));
    connection.exec(`INSERT INTO main.sqlite_sequence (name, seq)
      SELECT name, 0 FROM later.sqlite_sequence WHERE name NOT IN (SELECT name FROM main.sqlite_sequence)`);
    connection.exec(`UPDATE main.sqlite_sequence SET seq = max(seq,
      coalesce((SELECT assigned.seq FROM later.sqlite_sequence AS assigned WHERE assigned.name = sqlite_sequence.name), 0))`);
  });
}

export function addAuditEntry(path: string, entry: NewAuditEntry): void {
  withDatabase(path, (connection) => connection.runAll(() => addAudit(entry)));
}
