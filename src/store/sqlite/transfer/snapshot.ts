import { Database } from "bun:sqlite";
import { Connection, createPrivateFile } from "../connection.ts";
import { rejectForeignDatabase } from "../migrations.ts";

const BUSY_TIMEOUT_MS = 5_000;
const CACHE_KIB = 16 * 1024;

export interface DatabaseFacts {
  readonly schemaVersion: number;
  /** The number of rows by table. */
  readonly rows: Readonly<Record<string, number>>;
  /** What is damaged; empty for a sound database. */
  readonly problems: readonly string[];
}

/**
 * Copies a database as it is at one moment, while servers write to it. Migrates nothing: the copy has the schema of the
 * original. The caller waits until the copy is on the disk.
 */
export function copySnapshot(from: string, to: string): void {
  createPrivateFile(to);
  withDatabase(from, (connection) => connection.value("VACUUM INTO ?", to), "copy");
}

/** Reads a whole database and checks it. Servers may be running on it. */
export function inspectDatabase(path: string): DatabaseFacts {
  return withDatabase(path, (connection) => {
    const problems = [...integrityProblems(connection), ...brokenReferences(connection)];
    const schemaVersion = schemaVersionOf(connection);
    return { schemaVersion, rows: problems.length > 0 ? {} : rowsByTable(connection), problems };
  });
}

/** 0 for an empty database. */
function schemaVersionOf(connection: Connection): number {
  const table = connection.value("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'");
  return table === undefined
    ? 0
    : Number(connection.value("SELECT max(version) FROM schema_migrations") ?? 0);
}

/** Runs `work` on a database that exists, without changing its schema or its journal. Errors name the file. */
export function withDatabase<T>(
  path: string,
  work: (connection: Connection) => T,
  task: "read" | "copy" = "read",
): T {
  try {
    const connection = new Connection(
      new Database(path, { readwrite: true, safeIntegers: true, strict: true }),
    );
    try {
      connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      connection.run(`PRAGMA cache_size = -${CACHE_KIB}`);
      rejectForeignDatabase(connection);
      return work(connection);
    } finally {
      connection.close();
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot ${task} the database ${path}: ${reason}`, { cause: error });
  }
}

const MAX_PROBLEMS = 10;

function integrityProblems(connection: Connection): string[] {
  using statement = connection.prepare<{ integrity_check: string }, []>(
    `PRAGMA integrity_check(${MAX_PROBLEMS})`,
  );
  const lines = statement.all().map(({ integrity_check }) => integrity_check);
  return lines[0] === "ok" ? [] : lines;
}

function brokenReferences(connection: Connection): string[] {
  using statement = connection.prepare<{ table: string; parent: string; count: bigint }, []>(
    `SELECT "table", parent, count(*) AS count FROM pragma_foreign_key_check GROUP BY 1, 2`,
  );
  return statement
    .all()
    .map(
      ({ table, parent, count }) => `${count} rows of ${table} refer to rows of ${parent} that are missing`,
    );
}

function rowsByTable(connection: Connection): Record<string, number> {
  using statement = connection.prepare<{ name: string }, []>(
    `SELECT name FROM sqlite_schema
     WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'schema_migrations' ORDER BY name`,
  );
  const count = (table: string) => Number(connection.value(`SELECT count(*) FROM "${table}"`));
  return Object.fromEntries(statement.all().map(({ name }) => [name, count(name)]));
}
