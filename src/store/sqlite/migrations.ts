import { type Migration, rejectNewerSchema, SHARED_SQL } from "../migrations.ts";
import type { Connection } from "./connection.ts";

/**
 * The constraints repeat what the contract validates, so that a bug in the program fails instead of storing bad data.
 * AUTOINCREMENT, because identifiers are never used twice, even if a row is deleted. OR instead of IN, because SQLite
 * builds a temporary table for the list at every insert (`bun bench/store.ts`: 3.1 µs instead of 0.9).
 */
export const SQLITE_MIGRATIONS: readonly Migration[] = [
  {
    version: 5,
    name: "animals, orders and attempts, API keys, server settings",
    sql: `
      CREATE TABLE pets (
        id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
        name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 1024),
        category_id INTEGER NOT NULL,
        status TEXT CHECK (status = 'available' OR status = 'pending' OR status = 'sold'),
        -- The animal as the contract writes it, made once instead of at every reading.
        entry TEXT NOT NULL GENERATED ALWAYS AS (
          '{"id":' || id || ',"name":' || json_quote(name) || ',"categoryId":' || category_id
            || iif(status IS NULL, '}', ',"status":"' || status || '"}')
        ) STORED
      ) STRICT;
      -- Animals without a status fit no filter, so they cost the index nothing.
      CREATE INDEX pets_by_status ON pets (status, id) WHERE status IS NOT NULL;

      ${SHARED_SQL.orders}
      CREATE INDEX orders_by_key_and_status ON orders (key_id, status, id) WHERE key_id IS NOT NULL;

      -- By rowid in the order they were made, which is the order in which they expire.
      CREATE TABLE attempts (
        id INTEGER PRIMARY KEY,
        key_id INTEGER NOT NULL,
        operation TEXT NOT NULL,
        idempotency_key TEXT NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 255),
        fingerprint TEXT NOT NULL,
        resource_id INTEGER NOT NULL,
        body TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        UNIQUE (key_id, operation, idempotency_key)
      ) STRICT;

      ${SHARED_SQL.apiKeys}
      CREATE UNIQUE INDEX api_keys_by_revision ON api_keys (revision);

      ${SHARED_SQL.keySecrets}

      CREATE TABLE key_revision (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        revision INTEGER NOT NULL
      ) STRICT;
      INSERT INTO key_revision VALUES (1, 0);

      ${SHARED_SQL.serverSettings}
    `,
  },
  {
    version: 10,
    name: "owners, notes, labels and access of keys, hints of secrets, audit trail, usage history, orders by pet, imports",
    sql: `
      ${SHARED_SQL.keyFieldsAndAudit}

      ${SHARED_SQL.usage}

      -- Counts of up to 100 keys in an hour, 4 hours, a day or 5 days: a sum over all keys reads few rows.
      CREATE TABLE usage_totals (
        length INTEGER NOT NULL,
        start INTEGER NOT NULL,
        -- The keys from 100 * block on.
        block INTEGER NOT NULL,
        number_bytes INTEGER NOT NULL CHECK (number_bytes IN (4, 8)),
        -- Key, admitted, limited, banned and errors of each key: integers of 4 bytes or floats of 8, little-endian.
        counts BLOB NOT NULL,
        UNIQUE (length, start, block)
      ) STRICT;

      ${SHARED_SQL.lastUsed}

      ${SHARED_SQL.deprecatedUse}

      CREATE INDEX orders_by_pet ON orders (pet_id, id);

      -- Counts the changes that operators make, so that a server sees those of other processes.
      CREATE TABLE pet_revision (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        revision INTEGER NOT NULL
      ) STRICT;
      INSERT INTO pet_revision VALUES (1, 0);

      ${SHARED_SQL.imports}
    `,
  },
  {
    version: 11,
    name: "keys that are switched off",
    sql: "ALTER TABLE api_keys ADD COLUMN disabled_at INTEGER",
  },
  {
    version: 12,
    name: "operators, their tokens, sessions and sign-in codes, operators in the audit trail",
    sql: `
      ${SHARED_SQL.operators}
      CREATE INDEX audit_by_operator ON audit (operator, at, id) WHERE operator IS NOT NULL;
    `,
  },
  {
    version: 13,
    name: "when orders were closed",
    // NULL: the order is placed, or an earlier release closed it.
    sql: "ALTER TABLE orders ADD COLUMN closed_at INTEGER",
  },
  {
    version: 14,
    name: "the secret of the servers in a table of its own",
    // Servers of the release before have another one, and backups of theirs may have it: it is not taken over.
    sql: `
      CREATE TABLE server_secret (
        sole INTEGER PRIMARY KEY CHECK (sole = 1),
        secret TEXT NOT NULL
      ) STRICT;
      DELETE FROM server_settings WHERE name = 'server-secret';
    `,
  },
];

const CREATE_VERSION_TABLE = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))
) STRICT`;

/** Brings a database up to date. Any number of processes can do so at once: each step is applied by one of them. */
export function migrate(connection: Connection, migrations: readonly Migration[]): void {
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

function apply(connection: Connection, { version, name, sql }: Migration): void {
  connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  connection.exec(CREATE_VERSION_TABLE);
  connection.exec(sql);
  connection.value("INSERT INTO schema_migrations (version, name) VALUES (?, ?)", version, name);
}

/** 0 for an empty database. */
export function versionOf(connection: Connection): number {
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
  throw new Error("it is the database of another program; move it away or choose another directory");
}

function isEmpty(connection: Connection): boolean {
  return connection.value("SELECT 1 FROM sqlite_schema") === undefined;
}

/** The first releases set no application_id. Other programs have a table of this name too, with other columns. */
function hasVersionTable(connection: Connection): boolean {
  const columns = connection.value("SELECT group_concat(name) FROM pragma_table_info('schema_migrations')");
  return columns === "version,name,applied_at";
}
