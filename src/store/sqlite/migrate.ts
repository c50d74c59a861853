import { addAudit } from "../audit.ts";
import {
  type AppliedStep,
  checkTables,
  databaseMigrated,
  isUpToDate,
  type Migration,
  type Migrator,
  rejectRunningServers,
  type SchemaState,
  schemaState,
  SELECT_STEPS,
  type TableUse,
} from "../sql/migrations.ts";
import { registeredReleases } from "../server-reports.ts";
import { TABLES } from "../sql/tables.ts";
import type { Connection } from "./connection.ts";
import { SQLITE_DIALECT } from "./dialect.ts";

export const CREATE_VERSION_TABLE = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
  oldest_release TEXT
) STRICT`;

/**
 * Makes the tables, or brings those of an earlier release up to date, in one transaction. Any number of processes can
 * call it at once: one of them applies the steps. Nothing is changed if `use` does not allow it.
 */
export function applySqliteMigrations(
  connection: Connection,
  migrations: readonly Migration[],
  use: TableUse,
): void {
  const isReady = () => {
    const state = schemaOf(connection, migrations);
    checkTables(state, use);
    return isUpToDate(state);
  };
  // The first check takes no lock: opening a database that is up to date does not wait for its writers.
  if (isReady()) return;
  const migrated = connection.transaction(() => {
    if (isReady()) return undefined;
    const state = schemaOf(connection, migrations);
    const missing = migrations.filter(({ version }) => version > state.version);
    if (typeof use === "object" && !use.isForced)
      rejectRunningServers(missing, runningReleases(connection, use));
    for (const step of missing) apply(connection, step);
    // The database of quotas has no audit trail.
    if (state.version === 0 || typeof use !== "object" || !hasTable(connection, "audit")) return undefined;
    const entry = databaseMigrated(state.version, state.supportedVersion, use);
    return connection.runAll(() => addAudit(entry));
  });
  if (typeof use === "object" && migrated) use.onMigrated?.(migrated);
}

/** The release of the server that has the database open, if it is another process. */
function runningReleases(connection: Connection, by: Migrator): readonly string[] {
  return by.isServedElsewhere ? connection.runAll(() => registeredReleases(SQLITE_DIALECT)) : [];
}

function apply(connection: Connection, { version, name, worksWith, sql }: Migration): void {
  connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  connection.exec(CREATE_VERSION_TABLE);
  connection.exec(sql);
  const values = [version, name, worksWith];
  connection.value(
    "INSERT INTO schema_migrations (version, name, oldest_release) VALUES (?, ?, ?)",
    ...values,
  );
}

/** The steps that were applied to a database. */
export function stepsOf(connection: Connection): readonly AppliedStep[] {
  const isMigrated = versionColumns(connection).length > 0;
  return isMigrated ? connection.all<AppliedStep>(SELECT_STEPS) : [];
}

function schemaOf(connection: Connection, migrations: readonly Migration[]): SchemaState {
  return schemaState(stepsOf(connection), migrations);
}

/** "PetS" in ASCII. It identifies the file to other programs, among them `file`. */
const APPLICATION_ID = 0x50_65_74_53;

/** Throws if the database belongs to another program. It is called before anything is changed. */
export function rejectForeignDatabase(connection: Connection): void {
  const id = Number(connection.value("PRAGMA application_id"));
  if (id === APPLICATION_ID) return;
  if (id === 0 && (isEmpty(connection) || hasVersionTable(connection))) return;
  throw new Error("it is the database of another program; move it away or choose another directory");
}

function isEmpty(connection: Connection): boolean {
  return connection.value("SELECT 1 FROM sqlite_schema") === undefined;
}

/**
 * Whether the database has the table of versions with its columns. The first releases set no application_id, and other
 * programs have a table of this name with other columns.
 */
function hasVersionTable(connection: Connection): boolean {
  return versionColumns(connection).join().startsWith("version,name,applied_at");
}

/** The columns of the table of versions; none if the database has no such table. */
function versionColumns(connection: Connection): readonly string[] {
  const columns = connection.all<{ name: string }>("PRAGMA table_info('schema_migrations')");
  return columns.map(({ name }) => name);
}

/** Whether a database has a table. */
export function hasTable(connection: Connection, table: string): boolean {
  return connection.value("SELECT 1 FROM sqlite_schema WHERE name = ?", table) !== undefined;
}

/** Checks the columns, so that a database that somebody has altered fails when it is opened, not at a later request. */
export function checkColumns(connection: Connection): void {
  for (const { name, columns } of TABLES) {
    connection.value(`SELECT ${Object.keys(columns).join(", ")} FROM ${name} LIMIT 0`);
  }
}
