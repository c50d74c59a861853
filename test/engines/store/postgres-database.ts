import { SQL } from "bun";
import { openPostgres, type PostgresStores } from "../../../src/store/postgres/open-postgres.ts";
import { BY } from "../../key-store-arguments.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";

/** On a busy machine a query takes longer than the default. Tables of an earlier release are migrated. */
const OPTIONS = { timeoutMs: 60_000, use: BY };

/** The options of a connection of the store, but for the timeouts. */
export const PATIENT = {
  maxConnections: 1,
  connectMs: 60_000,
  statementMs: 60_000,
  lockMs: 60_000,
  idleInTransactionMs: 60_000,
};

/** A database for any number of stores, and a connection of its own. */
export interface TestDatabase {
  readonly url: string;
  readonly sql: SQL;
  open(options?: Parameters<typeof openPostgres>[1]): Promise<PostgresStores>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function createDatabase(): Promise<TestDatabase> {
  return databaseAt(await postgresUrl());
}

export function databaseAt(url: string): TestDatabase {
  const sql = new SQL(url, { max: 2, bigint: true });
  const opened: PostgresStores[] = [];
  return {
    url,
    sql,
    async open(options) {
      const stores = await openPostgres(url, { ...OPTIONS, ...options });
      opened.push(stores);
      return stores;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((stores) => stores.close()));
      await sql.close({ timeout: 0 });
    },
  };
}

let shared: Promise<TestDatabase> | undefined;

/** A database with tables that have no statistics. */
export async function createMigrated(): Promise<TestDatabase> {
  const database = await createDatabase();
  await (await database.open()).close();
  return database;
}

/** The same database for all files: emptying it takes a tenth of the time of creating another one. */
export async function emptyDatabase(): Promise<TestDatabase> {
  const { url, sql } = await (shared ??= createMigrated());
  await sql`TRUNCATE pets, orders, attempts, api_keys, key_secrets, server_settings, usage_hours, usage_days,
    key_last_used, deprecated_use, usage_batches, audit, imports, operators, operator_tokens,
    operator_sessions, sign_in_codes, servers, server_questions, webhook, plans, ban_rules, quotas RESTART IDENTITY`;
  await sql`UPDATE key_revision SET revision = 0`;
  return databaseAt(url);
}

/** Makes the results of idempotent requests older, as if the time had passed on the clock of the database. */
export async function makeOlder({ sql }: TestDatabase, ms: number): Promise<void> {
  await sql`UPDATE attempts SET created_at = created_at - ${ms}::int8`;
}
