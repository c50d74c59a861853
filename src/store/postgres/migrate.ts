import { HOUR_MS, MINUTE_MS } from "../../text/time-units.ts";
import type { SQL } from "bun";
import type { AuditEntry } from "../../domain/audit.ts";
import { addAudit } from "../audit.ts";
import {
  type AppliedStep,
  checkTables,
  databaseMigrated,
  isUpToDate,
  type PostgresMigration,
  rejectRunningServers,
  type SchemaState,
  schemaState,
  SELECT_STEPS,
  type TableUse,
} from "../sql/migrations.ts";
import { requireRow } from "../sql/steps.ts";
import { registeredReleases } from "../server-reports.ts";
import { connect } from "./connection.ts";
import { cannotOpen, isLocked } from "./errors.ts";
import { MIGRATIONS_LOCK, takeLock } from "./locks.ts";
import { POSTGRES_DIALECT, runAll } from "./dialect.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { POSTGRES_MIGRATIONS } from "../sql/migration-steps.ts";

const CREATE_VERSION_TABLE = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  oldest_release text
)`;
const HAS_STEPS = `SELECT FROM pg_class WHERE relname = 'schema_migrations'
  AND relnamespace = to_regnamespace(coalesce($1, current_schema()))`;

/**
 * The timeout of each step, and of what precedes the first. Servers that start together wait for one that migrates.
 */
const OPEN_TIMEOUT_MS = MINUTE_MS;
/** How long to wait for the lock of the server that migrates, which is part of OPEN_TIMEOUT_MS. */
const LOCK_WAIT_MS = 50_000;
/**
 * How long a step waits for the lock of a table. Every query on that table waits behind it, and on other servers
 * fails after 250 ms, so a step gives up sooner and tries again.
 */
const LOCK_TIMEOUT_MS = 100;
const LOCK_RETRY_MS = 400;
/** The attempts take 50 seconds together. */
const LOCK_ATTEMPTS = 100;
const ONLINE_STATEMENT_TIMEOUT_MS = HOUR_MS;

/** How long to wait for sessions and reports of servers that have been stopped or killed. */
const SERVER_END_MS = 5_000;

/** The oldest version that the store accepts. The PostgreSQL project no longer maintains earlier ones. */
export const OLDEST_VERSION = 13;
const OPEN_OPTIONS = {
  statementMs: OPEN_TIMEOUT_MS,
  lockMs: OPEN_TIMEOUT_MS,
  idleInTransactionMs: 10_000,
};

interface MigrateOptions {
  /** The schema of the environment. */
  readonly schema: string | undefined;
  readonly use: TableUse;
  /** The steps, by default those of a store. */
  readonly migrations?: readonly PostgresMigration[];
}

/** Connects once, makes or migrates the tables if `use` allows it, and returns the time of the database. */
export async function migratePostgres(
  url: string,
  { schema, use, migrations = POSTGRES_MIGRATIONS }: MigrateOptions,
): Promise<number> {
  let sql: SQL | undefined;
  try {
    // This throws if the file of sslrootcert cannot be read.
    sql = connect(url, { ...OPEN_OPTIONS, schema });
    await withTimeout(OPEN_TIMEOUT_MS, checkServer(sql));
    await applyPostgresMigrations(sql, { schema, use, migrations });
    const [row] = await sql.unsafe<{ now: bigint }[]>(`SELECT ${POSTGRES_DIALECT.now} AS now`);
    return Number(requireRow(row).now);
  } catch (error) {
    throw cannotOpen(url, error);
  } finally {
    await sql?.close({ timeout: 0 });
  }
}

async function checkServer(sql: SQL): Promise<void> {
  const [server] = await sql<[{ version: number; encoding: string }]>`
    SELECT current_setting('server_version_num')::int / 10000 AS version,
      current_setting('server_encoding') AS encoding`;
  if (server.version < OLDEST_VERSION) {
    throw new Error(`PostgreSQL ${server.version} is too old; ${OLDEST_VERSION} or newer is required`);
  }
  if (server.encoding !== "UTF8") {
    throw new Error(`its encoding is ${server.encoding}; create the database with the encoding UTF8`);
  }
}

/**
 * Makes the tables, or brings those of an earlier release up to date. Any number of servers can call it at once: each
 * step is applied by one of them. Nothing is changed if `use` does not allow it.
 */
async function applyPostgresMigrations(sql: SQL, options: Required<MigrateOptions>): Promise<void> {
  const { use } = options;
  const { from, steps } = await withTimeout(OPEN_TIMEOUT_MS, lockMissingSteps(sql, options));
  const migrator = from > 0 && typeof use === "object" ? use : undefined;
  let migrated: AuditEntry | undefined;
  for (const step of steps) {
    const recordStep = async (tx: SQL) => {
      await record(tx, step);
      if (migrator === undefined || step !== steps.at(-1)) return;
      const entry = databaseMigrated(from, step.version, migrator);
      migrated = await runAll(tx, () => addAudit(entry));
    };
    await (typeof step.sql === "string"
      ? withTimeout(OPEN_TIMEOUT_MS, applyInTransaction(sql, step.sql, recordStep))
      : applyOnline(sql, step.sql, recordStep));
  }
  if (migrated) migrator?.onMigrated?.(migrated);
}

interface MissingSteps {
  /** The version of the tables; 0 if there are none. */
  readonly from: number;
  readonly steps: readonly PostgresMigration[];
}

async function lockMissingSteps(
  sql: SQL,
  { schema, use, migrations }: Required<MigrateOptions>,
): Promise<MissingSteps> {
  // The first check takes no lock: opening a database that is up to date does not wait for other servers.
  const isMigrated = await tableExists(sql, "schema_migrations");
  if (isMigrated) {
    const state = await readSchema(sql, migrations);
    if (isUpToDate(state)) {
      checkTables(state, use);
      return { from: state.version, steps: [] };
    }
  }
  // The lock is polled for. Building an index concurrently waits for every transaction, and would also wait for a
  // server that waits for this lock.
  if (!(await takeLock(sql, MIGRATIONS_LOCK, LOCK_WAIT_MS))) {
    throw new Error("another server is migrating it; start this one when that is done");
  }
  // A session can cache that a table does not exist.
  const hasSteps = (await sql.unsafe(HAS_STEPS, [schema ?? null])).length > 0;
  const state = hasSteps ? await readSchema(sql, migrations) : schemaState([], migrations);
  checkTables(state, use);
  const steps = migrations.filter((step) => step.version > state.version);
  if (state.version > 0 && typeof use === "object" && !use.isForced) await waitForServers(sql, steps);
  if (schema !== undefined) await createSchema(sql, schema);
  await sql.unsafe(CREATE_VERSION_TABLE);
  return { from: state.version, steps };
}

/** Throws if servers run that cannot run on the new tables. */
async function waitForServers(sql: SQL, steps: MissingSteps["steps"]): Promise<void> {
  const deadline = scheduler.now() + SERVER_END_MS;
  for (;;) {
    try {
      return rejectRunningServers(steps, await runAll(sql, () => registeredReleases(POSTGRES_DIALECT)));
    } catch (error) {
      if (scheduler.now() > deadline) throw error;
      await scheduler.sleep(LOCK_RETRY_MS);
    }
  }
}

/** Reads the table of migrations, which exists. */
export async function readSchema(sql: SQL, migrations = POSTGRES_MIGRATIONS): Promise<SchemaState> {
  const steps: AppliedStep[] = await sql.unsafe(SELECT_STEPS);
  return schemaState(steps, migrations);
}

/** Checks first, because IF NOT EXISTS requires the privilege to create a schema even where it exists. */
async function createSchema(sql: SQL, schema: string): Promise<void> {
  const [found] = await sql<[{ exists: boolean }]>`SELECT to_regnamespace(${schema}) IS NOT NULL AS exists`;
  if (!found.exists) await sql`CREATE SCHEMA IF NOT EXISTS ${sql(schema)}`;
}

type RecordStep = (tx: SQL) => Promise<void>;

async function applyInTransaction(sql: SQL, statements: string, recordStep: RecordStep): Promise<void> {
  await inTransaction(sql, async (tx) => {
    await tx.unsafe(statements);
    await recordStep(tx);
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

async function applyOnline(sql: SQL, statements: readonly string[], recordStep: RecordStep): Promise<void> {
  // The lock that building an index waits for blocks no reads or writes.
  const timeouts = ["statement_timeout", "lock_timeout"].map(
    (name) => `SET ${name} = ${ONLINE_STATEMENT_TIMEOUT_MS}`,
  );
  await withTimeout(OPEN_TIMEOUT_MS, sql.unsafe(timeouts.join("; ")));
  for (const statement of statements) await withTimeout(ONLINE_STATEMENT_TIMEOUT_MS, sql.unsafe(statement));
  await withTimeout(OPEN_TIMEOUT_MS, inTransaction(sql, recordStep));
}

async function record(sql: SQL, { version, name, worksWith }: PostgresMigration): Promise<void> {
  await sql`INSERT INTO schema_migrations (version, name, oldest_release)
    VALUES (${version}, ${name}, ${worksWith})`;
}

export async function tableExists(sql: SQL, name: string): Promise<boolean> {
  const [found] = await sql<[{ exists: boolean }]>`SELECT to_regclass(${name}) IS NOT NULL AS exists`;
  return found.exists;
}
