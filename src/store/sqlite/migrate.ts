import { rejectNewerSchema } from "../migrations.ts";
import type { Connection } from "./connection.ts";
import type { SqliteMigration } from "./migrations.ts";

const CREATE_VERSION_TABLE = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))
) STRICT`;

/** Brings a database up to date. Any number of processes can do so at once: each step is applied by one of them. */
export function migrate(connection: Connection, migrations: readonly SqliteMigration[]): void {
  rejectNewerSchema(versionOf(connection), migrations);
  for (const step of migrations) {
    // Without a lock first: opening a database that is up to date does not wait for its writers.
    if (versionOf(connection) >= step.version) continue;
    connection.transaction(() => {
      if (versionOf(connection) < step.version) apply(connection, step);
    });
  }
  rejectNewerSchema(versionOf(connection), migrations);
}

function apply(connection: Connection, { version, name, sql, finish }: SqliteMigration): void {
  connection.run(`PRAGMA application_id = ${APPLICATION_ID}`);
  connection.run(CREATE_VERSION_TABLE);
  connection.run(sql);
  finish?.(connection);
  connection.value("INSERT INTO schema_migrations (version, name) VALUES (?, ?)", version, name);
}

function versionOf(connection: Connection): number {
  if (connection.value("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'") === undefined)
    return 0;
  return Number(connection.value("SELECT coalesce(max(version), 0) FROM schema_migrations"));
}

/** "PetS" in ASCII. It identifies the file to other programs, among them `file`. */
const APPLICATION_ID = 0x50_65_74_53;

/** Keeps the tables out of another program's database. Called before anything is changed. */
export function rejectForeignDatabase(connection: Connection): void {
  const id = Number(connection.value("PRAGMA application_id"));
  if (id === APPLICATION_ID) return;
  if (id === 0 && (isEmpty(connection) || hasVersionTable(connection))) return;
  throw new Error("it is the database of another program; move it away or choose another folder");
}

function isEmpty(connection: Connection): boolean {
  return connection.value("SELECT 1 FROM sqlite_schema") === undefined;
}

/** The first releases set no application_id. Other programs have a table of this name too, with other columns. */
function hasVersionTable(connection: Connection): boolean {
  const columns = connection.value("SELECT group_concat(name) FROM pragma_table_info('schema_migrations')");
  return columns === "version,name,applied_at";
}
