import type { SQL } from "bun";
import { type Migration, newestOf, refuseNewer } from "../migration.ts";
import { LOCK_SPACE, MIGRATIONS_LOCK } from "./advisory-locks.ts";

const RECORD = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)`;

/** Brings a database up to date. Any number of instances may do so at once: each step is taken by one of them. */
export async function migrate(sql: SQL, migrations: readonly Migration[], schema?: string): Promise<void> {
  // Asked without a lock first: a database that is up to date opens without waiting for anybody.
  const [record] = await sql<
    [{ exists: boolean }]
  >`SELECT to_regclass('schema_migrations') IS NOT NULL AS exists`;
  if (record.exists && newestOf(migrations) === (await versionOf(sql, migrations))) return;
  await sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${LOCK_SPACE}, ${MIGRATIONS_LOCK})`;
    if (schema !== undefined) await makeSchema(tx, schema);
    // Not to_regclass again: a session that was once told that a table is not there may go on believing it.
    await tx.unsafe(RECORD);
    const version = await versionOf(tx, migrations);
    for (const step of migrations) if (step.version > version) await take(tx, step);
  });
}

/** Only where it is missing: IF NOT EXISTS asks for the right to make one even where it is there. */
async function makeSchema(tx: SQL, schema: string): Promise<void> {
  const [found] = await tx<[{ exists: boolean }]>`SELECT to_regnamespace(${schema}) IS NOT NULL AS exists`;
  if (!found.exists) await tx`CREATE SCHEMA IF NOT EXISTS ${tx(schema)}`;
}

async function take(tx: SQL, { version, name, sql }: Migration): Promise<void> {
  await tx.unsafe(sql);
  await tx`INSERT INTO schema_migrations (version, name) VALUES (${version}, ${name})`;
}

async function versionOf(sql: SQL, migrations: readonly Migration[]): Promise<number> {
  const [newest] = await sql<[{ version: number }]>`
    SELECT coalesce(max(version), 0) AS version FROM schema_migrations`;
  refuseNewer(newest.version, migrations);
  return newest.version;
}
