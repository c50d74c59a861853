import type { SQL } from "bun";
import {
  type AppliedStep,
  type Migration,
  rejectNewerTables,
  type SchemaState,
  schemaState,
  SELECT_STEPS,
} from "../migrations.ts";
import { isLocked, MIGRATIONS_LOCK, tableExists, takeLock } from "./connection.ts";
import { scheduler, withTimeout } from "../../runtime/event-loop.ts";
import { type OnlineMigration, POSTGRES_MIGRATIONS } from "./migrations.ts";

const CREATE_VERSION_TABLE = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  oldest_release text
)`;
/** Release 1.1.0 made the table without this column. */
const HAS_RELEASES = `SELECT FROM pg_attribute
  WHERE attrelid = 'schema_migrations'::regclass AND attname = 'oldest_release'`;
const ADD_RELEASES = "ALTER TABLE schema_migrations ADD COLUMN oldest_release text";

/**
 * The timeout of each step, and of what precedes the first. Instances that start together wait for the one that
 * migrates.
 */
export const OPEN_TIMEOUT_MS = 60_000;
/** How long to wait for the lock of the instance that migrates, which is part of OPEN_TIMEOUT_MS. */
const LOCK_WAIT_MS = 50_000;
/**
 * How long a step waits for the lock of a table. Every query on that table waits behind it, and on other instances
 * fails after 250 ms, so a step gives up sooner and tries again.
 */
const LOCK_TIMEOUT_MS = 100;
const LOCK_RETRY_MS = 400;
/** The attempts take 50 seconds together. */
const LOCK_ATTEMPTS = 100;
const ONLINE_STATEMENT_TIMEOUT_MS = 60 * 60 * 1000;

/** Brings the tables up to date. Any number of instances can call it at once: each step is applied by one of them. */
export async function migrate(sql: SQL, schema: string | undefined): Promise<void> {
  for (const step of await withTimeout(OPEN_TIMEOUT_MS, lockMissingSteps(sql, schema))) {
    await ("sql" in step
      ? withTimeout(OPEN_TIMEOUT_MS, applyInTransaction(sql, step))
      : applyOnline(sql, step));
  }
}

async function lockMissingSteps(sql: SQL, schema: string | undefined): Promise<typeof POSTGRES_MIGRATIONS> {
  // The first check takes no lock: opening a database that is up to date does not wait for other instances.
  const isMigrated = await tableExists(sql, "schema_migrations");
  if (isMigrated && isUpToDate(await usableSchema(sql))) return [];
  // The lock is polled for. Building an index concurrently waits for every transaction, and would also wait for an
  // instance that waits for this lock.
  if (!(await takeLock(sql, MIGRATIONS_LOCK, LOCK_WAIT_MS))) {
    throw new Error("another instance is migrating it; start this one when that is done");
  }
  if (schema !== undefined) await createSchema(sql, schema);
  // This does not call to_regclass again, because a session can cache that a table does not exist.
  await sql.unsafe(CREATE_VERSION_TABLE);
  const schemaNow = await usableSchema(sql);
  if (!isUpToDate(schemaNow) && (await sql.unsafe(HAS_RELEASES)).length === 0)
    await inTransaction(sql, (tx) => tx.unsafe(ADD_RELEASES));
  return POSTGRES_MIGRATIONS.filter((step) => step.version > schemaNow.version);
}

function isUpToDate({ version, supportedVersion }: SchemaState): boolean {
  return version >= supportedVersion;
}

/** The state of the tables. Throws if this program cannot run on them. */
async function usableSchema(sql: SQL): Promise<SchemaState> {
  const state = await readSchema(sql);
  rejectNewerTables(state);
  return state;
}

/** Reads the table of migrations, which exists. */
export async function readSchema(sql: SQL): Promise<SchemaState> {
  const steps: AppliedStep[] = await sql.unsafe(SELECT_STEPS);
  return schemaState(steps, POSTGRES_MIGRATIONS);
}

/** Checks first, because IF NOT EXISTS requires the privilege to create a schema even where it exists. */
async function createSchema(sql: SQL, schema: string): Promise<void> {
  const [found] = await sql<[{ exists: boolean }]>`SELECT to_regnamespace(${schema}) IS NOT NULL AS exists`;
  if (!found.exists) await sql`CREATE SCHEMA IF NOT EXISTS ${sql(schema)}`;
}

async function applyInTransaction(sql: SQL, step: Migration): Promise<void> {
  await inTransaction(sql, async (tx) => {
    await tx.unsafe(step.sql);
    await record(tx, step);
  });
}

async function inTransaction(sql: SQL, work: (tx: SQL) => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await sql.begin(async (tx) => {
        await tx.unsafe(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await work(tx);
      });
      return;
    } catch (error) {
      if (!isLocked(error) || attempt === LOCK_ATTEMPTS) throw error;
      await scheduler.sleep(LOCK_RETRY_MS);
    }
  }
}

async function applyOnline(sql: SQL, step: OnlineMigration): Promise<void> {
  // The lock that building an index waits for blocks no reads or writes.
  const timeouts = ["statement_timeout", "lock_timeout"].map(
    (name) => `SET ${name} = ${ONLINE_STATEMENT_TIMEOUT_MS}`,
  );
  await withTimeout(OPEN_TIMEOUT_MS, sql.unsafe(timeouts.join("; ")));
  for (const statement of step.statements)
    await withTimeout(ONLINE_STATEMENT_TIMEOUT_MS, sql.unsafe(statement));
  await withTimeout(OPEN_TIMEOUT_MS, record(sql, step));
}

type Recorded = Pick<Migration, "version" | "name" | "oldestRelease">;

async function record(sql: SQL, { version, name, oldestRelease }: Recorded): Promise<void> {
  await sql`INSERT INTO schema_migrations (version, name, oldest_release)
    VALUES (${version}, ${name}, ${oldestRelease})`;
}
