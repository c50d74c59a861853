/**
 * One step of a schema. A released step is never edited, not even its name and its comments, because databases store
 * them. A change of the schema is a new step at the end.
 */
export interface Migration {
  /** Ascends. Numbers without a step belonged to steps that no release ended with. */
  readonly version: number;
  /** As it is recorded in the database. */
  readonly name: string;
  readonly sql: string;
}

type Versions = readonly Pick<Migration, "version">[];

export function latestVersion(migrations: Versions): number {
  return migrations.at(-1)?.version ?? 0;
}

/** Protects a database that a later release has changed. */
export function rejectNewerSchema(version: number, migrations: Versions): void {
  const supported = latestVersion(migrations);
  if (version <= supported) return;
  throw new Error(
    `its schema has version ${version}, and this petstore supports versions up to ${supported}; upgrade petstore`,
  );
}

/** What the steps of both databases have in common, as SQLite has it; as released as the steps are. */
export const SHARED_SQL = {
  orders: `
    CREATE TABLE orders (
      id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
      pet_id INTEGER NOT NULL REFERENCES pets (id),
      status TEXT NOT NULL CHECK (status = 'placed' OR status = 'completed' OR status = 'cancelled'),
      created_at INTEGER NOT NULL,
      -- NULL: an earlier release placed the order and recorded no key. No key sees such an order.
      key_id INTEGER
    ) STRICT;
    CREATE INDEX orders_by_status ON orders (status, id);
    CREATE UNIQUE INDEX one_placed_order_per_pet ON orders (pet_id) WHERE status = 'placed';
    CREATE INDEX orders_by_key ON orders (key_id, id) WHERE key_id IS NOT NULL;
  `,
  apiKeys: `
    CREATE TABLE api_keys (
      id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
      name TEXT NOT NULL CHECK (length(name) > 0),
      plan TEXT NOT NULL CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
      per_minute INTEGER CHECK (per_minute > 0),
      per_day INTEGER CHECK (per_day > 0),
      created_at INTEGER NOT NULL,
      expires_at INTEGER,
      revoked_at INTEGER,
      pardoned_at INTEGER,
      revision INTEGER NOT NULL,
      unban_revision INTEGER,
      CHECK ((per_minute IS NULL) = (per_day IS NULL)),
      CHECK (per_minute IS NULL OR plan = 'enterprise')
    ) STRICT;
  `,
  keySecrets: `
    CREATE TABLE key_secrets (
      hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
      key_id INTEGER NOT NULL REFERENCES api_keys (id),
      valid_until INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX key_secrets_by_key ON key_secrets (key_id);
  `,
  serverSettings: `
    CREATE TABLE server_settings (
      name TEXT PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
  `,
  keyFieldsAndAudit: `
    ALTER TABLE api_keys ADD COLUMN owner TEXT;
    ALTER TABLE api_keys ADD COLUMN notes TEXT;
    -- A JSON array of texts.
    ALTER TABLE api_keys ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE api_keys ADD COLUMN access TEXT NOT NULL DEFAULT 'write' CHECK (access IN ('read', 'write'));
    -- NULL: an earlier release stored the secret.
    ALTER TABLE key_secrets ADD COLUMN hint TEXT;
    ALTER TABLE key_secrets ADD COLUMN issued_at INTEGER;

    CREATE TABLE audit (
      id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
      at INTEGER NOT NULL,
      actor TEXT NOT NULL CHECK (length(actor) > 0),
      actor_name TEXT,
      action TEXT NOT NULL CHECK (length(action) > 0),
      target_kind TEXT,
      target_id INTEGER,
      -- JSON objects with the fields that changed.
      values_before TEXT,
      values_after TEXT,
      CHECK ((target_kind IS NULL) = (target_id IS NULL))
    ) STRICT;
    CREATE INDEX audit_by_time ON audit (at, id);
    CREATE INDEX audit_by_target ON audit (target_kind, target_id, at, id) WHERE target_kind IS NOT NULL;
    CREATE INDEX audit_by_action ON audit (action, at, id);
    CREATE INDEX audit_by_actor ON audit (actor, at, id);
    CREATE INDEX audit_by_action_and_actor ON audit (action, actor, at, id);
  `,
  usage: `
    -- One row per key and interval, in the order of time: counts are added to the rows at the end of the table.
    CREATE TABLE usage_hours (
      start INTEGER NOT NULL,
      key_id INTEGER NOT NULL,
      admitted INTEGER NOT NULL,
      limited INTEGER NOT NULL,
      banned INTEGER NOT NULL,
      errors INTEGER NOT NULL,
      -- Admitted requests and errors by operation, as JSON.
      operations TEXT NOT NULL,
      PRIMARY KEY (start, key_id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE usage_days (
      start INTEGER NOT NULL,
      key_id INTEGER NOT NULL,
      admitted INTEGER NOT NULL,
      limited INTEGER NOT NULL,
      banned INTEGER NOT NULL,
      errors INTEGER NOT NULL,
      operations TEXT NOT NULL,
      PRIMARY KEY (start, key_id)
    ) STRICT, WITHOUT ROWID;
  `,
  lastUsed: `
    CREATE TABLE key_last_used (
      key_id INTEGER PRIMARY KEY,
      last_used_at INTEGER NOT NULL
    ) STRICT;

    -- The last batch that each server process has added, so that none is added twice.
    CREATE TABLE usage_batches (
      writer TEXT PRIMARY KEY,
      sequence INTEGER NOT NULL,
      hour INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
  `,
  deprecatedUse: `
    CREATE TABLE deprecated_use (
      operation TEXT NOT NULL,
      key_id INTEGER NOT NULL,
      last_used_at INTEGER NOT NULL,
      PRIMARY KEY (operation, key_id)
    ) STRICT, WITHOUT ROWID;
  `,
  imports: `
    -- How far each import of a file has come.
    CREATE TABLE imports (
      fingerprint TEXT PRIMARY KEY,
      source TEXT NOT NULL,
      options TEXT NOT NULL,
      started_at INTEGER NOT NULL,
      finished_at INTEGER,
      rows_done INTEGER NOT NULL DEFAULT 0,
      added INTEGER NOT NULL DEFAULT 0,
      replaced INTEGER NOT NULL DEFAULT 0,
      skipped INTEGER NOT NULL DEFAULT 0,
      rejected INTEGER NOT NULL DEFAULT 0,
      rejects_bytes INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
  `,
  operators: `
    CREATE TABLE operators (
      id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
      name TEXT NOT NULL CHECK (length(name) > 0),
      role TEXT NOT NULL CHECK (role IN ('metrics', 'viewer', 'support', 'admin')),
      created_at INTEGER NOT NULL,
      last_used_at INTEGER,
      revoked_at INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX operators_by_name ON operators (name) WHERE revoked_at IS NULL;

    -- Those that were replaced stay: a token that was replaced is never taken for a new one.
    CREATE TABLE operator_tokens (
      hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
      operator_id INTEGER NOT NULL REFERENCES operators (id),
      hint TEXT NOT NULL,
      issued_at INTEGER NOT NULL,
      replaced_at INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX current_operator_tokens ON operator_tokens (operator_id) WHERE replaced_at IS NULL;

    -- Of the operator whose token is a setting, operator_id is NULL.
    CREATE TABLE operator_sessions (
      cookie_hash TEXT PRIMARY KEY CHECK (length(cookie_hash) = 64),
      secret_hash TEXT NOT NULL CHECK (length(secret_hash) = 64),
      operator_id INTEGER REFERENCES operators (id),
      token_check TEXT,
      created_at INTEGER NOT NULL,
      ends_at INTEGER NOT NULL,
      CHECK ((operator_id IS NULL) = (token_check IS NOT NULL))
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE sign_in_codes (
      code_hash TEXT PRIMARY KEY CHECK (length(code_hash) = 64),
      operator_id INTEGER REFERENCES operators (id),
      ends_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    ALTER TABLE audit ADD COLUMN operator TEXT;
  `,
} as const;

/** The same for PostgreSQL. */
export function forPostgres(sql: string): string {
  return sql
    .replaceAll(
      /INTEGER PRIMARY KEY AUTOINCREMENT CHECK \(id > 0\)/g,
      "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    )
    .replaceAll("INTEGER", "bigint")
    .replaceAll("operations TEXT", "operations jsonb")
    .replaceAll(/\) STRICT(?:, WITHOUT ROWID)?;/g, ");")
    .replaceAll(/length\((\w+)\) > 0/g, "$1 <> ''")
    .replaceAll(/(\w+) = ('\w+'(?: OR \1 = '\w+')+)/g, (_, column: string, values: string) => {
      return `${column} IN (${values.replaceAll(` OR ${column} = `, ", ")})`;
    });
}
