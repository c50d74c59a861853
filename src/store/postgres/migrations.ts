import type { SQL } from "bun";
import { latestVersion, type Migration, rejectNewerSchema } from "../migrations.ts";
import { LOCK_SPACE, MIGRATIONS_LOCK } from "./advisory-locks.ts";

/**
 * The same tables as in SQLite. The constraints repeat what the contract validates, so that a bug in the program fails
 * instead of storing bad data. Times are milliseconds since the epoch.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "animals, orders and attempts",
    sql: `
      CREATE TABLE pets (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1024),
        category_id bigint NOT NULL,
        status text CHECK (status IN ('available', 'pending', 'sold'))
      );
      -- Animals without a status fit no filter, so they cost the index nothing.
      CREATE INDEX pets_by_status ON pets (status, id) WHERE status IS NOT NULL;

      CREATE TABLE orders (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        pet_id bigint NOT NULL REFERENCES pets (id),
        status text NOT NULL CHECK (status IN ('placed', 'completed', 'cancelled')),
        created_at bigint NOT NULL
      );
      CREATE INDEX orders_by_status ON orders (status, id);
      CREATE UNIQUE INDEX one_placed_order_per_pet ON orders (pet_id) WHERE status = 'placed';

      CREATE TABLE attempts (
        key_id bigint NOT NULL,
        operation text NOT NULL,
        idempotency_key text NOT NULL CHECK (char_length(idempotency_key) BETWEEN 1 AND 255),
        fingerprint text NOT NULL,
        resource_id bigint NOT NULL,
        body text NOT NULL,
        created_at bigint NOT NULL,
        PRIMARY KEY (key_id, operation, idempotency_key)
      );
      CREATE INDEX attempts_by_age ON attempts (created_at);
    `,
  },
  {
    version: 2,
    name: "API keys",
    sql: `
      CREATE TABLE api_keys (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL CHECK (name <> ''),
        plan text NOT NULL CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
        per_minute bigint CHECK (per_minute > 0),
        per_day bigint CHECK (per_day > 0),
        created_at bigint NOT NULL,
        expires_at bigint,
        revoked_at bigint,
        pardoned_at bigint,
        revision bigint NOT NULL UNIQUE,
        CHECK ((per_minute IS NULL) = (per_day IS NULL)),
        CHECK (per_minute IS NULL OR plan = 'enterprise')
      );

      CREATE TABLE key_secrets (
        hash text PRIMARY KEY CHECK (length(hash) = 64),
        key_id bigint NOT NULL REFERENCES api_keys (id),
        valid_until bigint
      );
      CREATE INDEX key_secrets_by_key ON key_secrets (key_id);

      CREATE TABLE key_revision (
        sole integer PRIMARY KEY CHECK (sole = 1),
        revision bigint NOT NULL
      );
      INSERT INTO key_revision VALUES (1, 0);
    `,
  },
  {
    version: 3,
    name: "server settings",
    sql: `
      CREATE TABLE server_settings (
        name text PRIMARY KEY,
        value text NOT NULL
      );
    `,
  },
  {
    version: 4,
    name: "revisions of unbans",
    sql: "ALTER TABLE api_keys ADD COLUMN unban_revision bigint",
  },
];

const CREATE_VERSION_TABLE = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)`;

/** Brings a database up to date. Any number of instances can do so at once: each step is applied by one of them. */
export async function migrate(sql: SQL, schema: string | undefined): Promise<void> {
  // Without a lock first: opening a database that is up to date does not wait for other instances.
  const [table] = await sql<
    [{ exists: boolean }]
  >`SELECT to_regclass('schema_migrations') IS NOT NULL AS exists`;
  if (table.exists && latestVersion(MIGRATIONS) === (await versionOf(sql))) return;
  await sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${LOCK_SPACE}, ${MIGRATIONS_LOCK})`;
    if (schema !== undefined) await createSchema(tx, schema);
    // Not to_regclass again: a session can cache that a table does not exist.
    await tx.unsafe(CREATE_VERSION_TABLE);
    const version = await versionOf(tx);
    for (const step of MIGRATIONS) if (step.version > version) await apply(tx, step);
  });
}

/** IF NOT EXISTS alone requires the privilege to create a schema even where it exists. */
async function createSchema(tx: SQL, schema: string): Promise<void> {
  const [found] = await tx<[{ exists: boolean }]>`SELECT to_regnamespace(${schema}) IS NOT NULL AS exists`;
  if (!found.exists) await tx`CREATE SCHEMA IF NOT EXISTS ${tx(schema)}`;
}

async function apply(tx: SQL, { version, name, sql }: Migration): Promise<void> {
  await tx.unsafe(sql);
  await tx`INSERT INTO schema_migrations (version, name) VALUES (${version}, ${name})`;
}

async function versionOf(sql: SQL): Promise<number> {
  const [latest] = await sql<[{ version: number }]>`
    SELECT coalesce(max(version), 0) AS version FROM schema_migrations`;
  rejectNewerSchema(latest.version, MIGRATIONS);
  return latest.version;
}
