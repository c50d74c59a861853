import { type Migration, refuseNewer } from "../migration.ts";
import type { Connection } from "./connection.ts";
import { claim } from "./ownership.ts";

const RECORD = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))
) STRICT`;

/** Brings a database up to date. Any number of processes may do so at once: each step is taken by one of them. */
export function migrate(connection: Connection, migrations: readonly Migration[]): void {
  refuseNewer(versionOf(connection), migrations);
  for (const step of migrations) {
    // Asked without a lock first: a database that is up to date opens without waiting for its writers.
    if (versionOf(connection) >= step.version) continue;
    connection.transaction(() => {
      if (versionOf(connection) < step.version) take(connection, step);
    });
  }
  refuseNewer(versionOf(connection), migrations);
}

function take(connection: Connection, { version, name, sql }: Migration): void {
  claim(connection);
  connection.run(RECORD);
  connection.run(sql);
  connection.value("INSERT INTO schema_migrations (version, name) VALUES (?, ?)", version, name);
}

function versionOf(connection: Connection): number {
  const hasRecord = connection.value("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'");
  if (hasRecord === undefined) return 0;
  return Number(connection.value("SELECT coalesce(max(version), 0) FROM schema_migrations"));
}
