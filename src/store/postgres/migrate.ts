import { SQL } from "bun";
import { latestVersion, type Migration, rejectNewerSchema } from "../migrations.ts";
import { LOCK_SPACE, MIGRATIONS_LOCK } from "./advisory-locks.ts";
import { MIGRATIONS, type OnlineMigration } from "./migrations.ts";
import type { QueryTimeout } from "./connections/query-timeout.ts";

export interface MigrateOptions {
  readonly schema: string | undefined;
  /** Bounds the whole start, except for the statements of online steps. */
  readonly timeout: QueryTimeout;
}

const CREATE_VERSION_TABLE = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)`;

/** Together 50 seconds, within the timeout of the start. */
const POLL_MS = 100;
const POLLS = 500;
/**
 * While a step waits for the lock of a table, every query on that table waits behind it. The queries of other instances
 * fail after 250 ms, so a step gives up sooner and tries again.
 */
const LOCK_TIMEOUT_MS = 100;
const LOCK_RETRY_MS = 400;
/** Together 50 seconds, within the timeout of the start. */
const LOCK_ATTEMPTS = 100;
const ONLINE_STATEMENT_TIMEOUT_MS = 60 * 60 * 1000;

/** Brings a database up to date. Any number of instances can do so at once: each step is applied by one of them. */
export async function migrate(sql: SQL, { schema, timeout }: MigrateOptions): Promise<void> {
  // Without a lock first: opening a database that is up to date does not wait for other instances.
  const [table] = await sql<
    [{ exists: boolean }]
  >`SELECT to_regclass('schema_migrations') IS NOT NULL AS exists`;
  if (table.exists && latestVersion(MIGRATIONS) === (await versionOf(sql))) return;
  await lock(sql);
  if (schema !== undefined) await createSchema(sql, schema);
  // Not to_regclass again: a session can cache that a table does not exist.
  await sql.unsafe(CREATE_VERSION_TABLE);
  const version = await versionOf(sql);
  for (const step of MIGRATIONS) {
    if (step.version <= version) continue;
    await ("sql" in step ? applyInTransaction(sql, step) : applyOnline(sql, step, timeout));
  }
}

/**
 * Held until the session ends. Polled, because an index that is built concurrently waits for every transaction, and so
 * for an instance that waits for this lock.
 */
async function lock(sql: SQL): Promise<void> {
  for (let poll = 0; poll < POLLS; poll++) {
    const [{ locked }] = await sql<[{ locked: boolean }]>`
      SELECT pg_try_advisory_lock(${LOCK_SPACE}, ${MIGRATIONS_LOCK}) AS locked`;
    if (locked) return;
    await Bun.sleep(POLL_MS);
  }
  throw new Error("another instance is migrating it; start this one when that is done");
}

/** IF NOT EXISTS alone requires the privilege to create a schema even where it exists. */
async function createSchema(sql: SQL, schema: string): Promise<void> {
  const [found] = await sql<[{ exists: boolean }]>`SELECT to_regnamespace(${schema}) IS NOT NULL AS exists`;
  if (!found.exists) await sql`CREATE SCHEMA IF NOT EXISTS ${sql(schema)}`;
}

async function applyInTransaction(sql: SQL, step: Migration): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await sql.begin(async (tx) => {
        await tx.unsafe(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await tx.unsafe(step.sql);
        await record(tx, step);
      });
      return;
    } catch (error) {
      if (!isLockTimeout(error) || attempt === LOCK_ATTEMPTS) throw error;
      await Bun.sleep(LOCK_RETRY_MS);
    }
  }
}

async function applyOnline(sql: SQL, step: OnlineMigration, timeout: QueryTimeout): Promise<void> {
  // The lock that an index waits for blocks no reads or writes.
  await sql.unsafe(`SET statement_timeout = ${ONLINE_STATEMENT_TIMEOUT_MS}`);
  await sql.unsafe(`SET lock_timeout = ${ONLINE_STATEMENT_TIMEOUT_MS}`);
  for (const statement of step.statements) {
    timeout.restart(ONLINE_STATEMENT_TIMEOUT_MS);
    await sql.unsafe(statement);
  }
  await record(sql, step);
}

async function record(sql: SQL, { version, name }: Pick<Migration, "version" | "name">): Promise<void> {
  await sql`INSERT INTO schema_migrations (version, name) VALUES (${version}, ${name})`;
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === "55P03";
}

async function versionOf(sql: SQL): Promise<number> {
  const [latest] = await sql<[{ version: number }]>`
    SELECT coalesce(max(version), 0) AS version FROM schema_migrations`;
  rejectNewerSchema(latest.version, MIGRATIONS);
  return latest.version;
}
