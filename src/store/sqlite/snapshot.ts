/* Copies of whole databases: making them, checking them, and making them the data of a service again. */

import { existsSync } from "node:fs";
import type { NewAuditEntry } from "../../domain/audit.ts";
import { LAST_BACKUP } from "../../domain/stored-values.ts";
import { countOf } from "../../text/formatting.ts";
import { withoutLinks } from "../../runtime/own-files.ts";
import { addAudit } from "../audit.ts";
import { type AppliedStep, latestVersion, type SchemaState, schemaState } from "../sql/migrations.ts";
import { SAVE_VALUE } from "../stored-values.ts";
import { Connection } from "./connection.ts";
import { createDatabaseFile, keepLogFiles, openFile } from "./database-file.ts";
import { failureOf } from "./errors.ts";
import { hasTable, rejectForeignDatabase, stepsOf } from "./migrate.ts";
import { SQLITE_MIGRATIONS } from "../sql/migration-steps.ts";
import { dropBackupTables, schemaProblems } from "./schema-check.ts";
import { STATEMENT_WAIT_MS } from "./waits.ts";

const CACHE_KIB = 16 * 1024;

export interface DatabaseFacts {
  readonly schemaVersion: number;
  /** The steps of its schema. */
  readonly steps: readonly AppliedStep[];
  /** The number of rows by table. */
  readonly rows: Readonly<Record<string, number>>;
  /** Descriptions of damage, and of what no release has made; empty for a sound database. */
  readonly problems: readonly string[];
  /** The time of the newest key, in milliseconds since the epoch. */
  readonly newestTime: number | undefined;
  /** When the last backup was made, likewise. */
  readonly lastBackupAt: number | undefined;
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
  connection.exec("PRAGMA secure_delete = ON");
  connection.transaction(() => {
    connection.exec("DELETE FROM operator_sessions");
    connection.exec("DELETE FROM sign_in_codes");
    connection.exec("DELETE FROM servers");
    connection.exec("DELETE FROM server_questions");
    // Tables of release 1.3.0 have the secret of servers of 1.2.0.
    if (hasTable(connection, "server_secret")) connection.exec("DELETE FROM server_secret");
  });
}

/** Records the time of a backup in the database that was copied. */
export function recordBackup(path: string, at: number): void {
  withDatabase(path, (connection) => connection.value(SAVE_VALUE, LAST_BACKUP, String(at)), "write to");
}

/** The database of quotas has no such table. */
function lastBackupOf(connection: Connection): number | undefined {
  if (!hasTable(connection, "server_settings")) return undefined;
  const saved = connection.value("SELECT value FROM server_settings WHERE name = ?", LAST_BACKUP);
  return typeof saved === "string" ? Number.parseInt(saved, 10) : undefined;
}

/** Reads a whole database and checks it. Servers may be running on it. Its steps by default are those of a store. */
export function inspectDatabase(path: string, migrations = SQLITE_MIGRATIONS): DatabaseFacts {
  return withDatabase(path, (connection) => {
    const unreadable = schemaProblems(connection, migrations);
    if (unreadable.length > 0)
      return {
        schemaVersion: 0,
        steps: [],
        rows: {},
        problems: unreadable,
        newestTime: undefined,
        lastBackupAt: undefined,
      };
    const problems = [...integrityProblems(connection), ...brokenReferences(connection)];
    const rows = problems.length > 0 ? {} : rowsByTable(connection);
    const newest = rows["api_keys"] && connection.value("SELECT max(created_at) FROM api_keys");
    const newestTime = typeof newest === "bigint" ? Number(newest) : undefined;
    const steps = stepsOf(connection);
    return {
      schemaVersion: latestVersion(steps),
      steps,
      rows,
      problems,
      newestTime,
      lastBackupAt: lastBackupOf(connection),
    };
  });
}

/** Throws if the tables of a database of a store are not those that a release has made. */
export function checkSchema(path: string): void {
  const [problem] = withDatabase(path, (connection) => schemaProblems(connection, SQLITE_MIGRATIONS));
  if (problem !== undefined) throw new Error(`${path} is not sound: ${problem}`);
}

/** Reads the state of the tables of a store, and nothing else. */
export function inspectSchema(path: string): SchemaState {
  return withDatabase(path, (connection) => schemaState(stepsOf(connection), SQLITE_MIGRATIONS));
}

/** Runs `work` on a database that exists, without changing its schema or its journal. Errors name the file. */
export function withDatabase<T>(
  path: string,
  work: (connection: Connection) => T,
  task: "read" | "copy" | "write to" = "read",
): T {
  try {
    const database = openFile(path);
    if (existsSync(`${path}-shm`)) keepLogFiles(database);
    const connection = new Connection(database);
    try {
      connection.exec(`PRAGMA busy_timeout = ${STATEMENT_WAIT_MS.wholeDatabase}`);
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
     WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT IN ('schema_migrations', 'backup') ORDER BY name`,
  );
  const count = (table: string) => Number(connection.value(`SELECT count(*) FROM "${table}"`));
  return Object.fromEntries(tables.map(({ name }) => [name, count(name)]));
}

/** The last identifier of each table that assigns them. */
export type AssignedIds = readonly { readonly name: string; readonly seq: bigint }[];

export function assignedIds(path: string): AssignedIds {
  return withDatabase(path, (connection) => connection.all("SELECT name, seq FROM sqlite_sequence"));
}

interface RestoredCopy {
  /** The identifiers that a later state of the data has assigned. */
  readonly assigned: AssignedIds;
  readonly entry: NewAuditEntry;
}

/** Makes a copy of a backup the database that goes on after those identifiers. */
export function completeRestoredCopy(path: string, { assigned, entry }: RestoredCopy): void {
  withDatabase(path, (connection) => {
    connection.transaction(() => {
      dropBackupTables(connection);
      for (const { name, seq } of assigned) {
        const last = connection.value("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", name);
        if (typeof last !== "bigint" || last < seq) setLastId(connection, name, seq);
      }
      connection.runAll(() => addAudit(entry));
    });
  });
}

/** Makes the next identifier of a table follow this one. SQLite's own table has no unique names. */
export function setLastId(connection: Connection, table: string, id: bigint): void {
  connection.value("DELETE FROM sqlite_sequence WHERE name = ?", table);
  connection.value("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, id);
}

/** Moves what is in the log to the database, so that its file alone is complete. Nothing else may have it open. */
export function emptyLog(path: string): void {
  withDatabase(path, (connection) => connection.value("PRAGMA wal_checkpoint(TRUNCATE)"), "write to");
}
