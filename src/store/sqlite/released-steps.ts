import type { Migration } from "../sql/migrations.ts";

/**
 * The constraints repeat what the contract validates, so that a bug in the program causes an error instead of bad data.
 * Tables use AUTOINCREMENT, so that an identifier is never used twice, even if its row is deleted. Constraints use OR
 * instead of IN, because SQLite builds a temporary table for the list at every insert (`bun bench/store.ts`: 3.1 µs
 * instead of 0.9).
 */
export const RELEASED_ON_SQLITE: readonly Migration[] = [
  {
    version: 5,
    name: "animals, orders and attempts, API keys, server settings",
    worksWith: "0.9.0",
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
      CREATE UNIQUE INDEX api_keys_by_revision ON api_keys (revision);

      CREATE TABLE key_secrets (
        hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
        key_id INTEGER NOT NULL REFERENCES api_keys (id),
        valid_until INTEGER
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX key_secrets_by_key ON key_secrets (key_id);

      CREATE TABLE key_revision (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        revision INTEGER NOT NULL
      ) STRICT;
      INSERT INTO key_revision VALUES (1, 0);

      CREATE TABLE server_settings (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
      ) STRICT, WITHOUT ROWID;
    `,
  },
  {
    version: 10,
    name: "owners, notes, labels and access of keys, hints of secrets, audit trail, usage history, orders by pet, imports",
    worksWith: "1.0.0",
    sql: `
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

      CREATE TABLE deprecated_use (
        operation TEXT NOT NULL,
        key_id INTEGER NOT NULL,
        last_used_at INTEGER NOT NULL,
        PRIMARY KEY (operation, key_id)
      ) STRICT, WITHOUT ROWID;

      CREATE INDEX orders_by_pet ON orders (pet_id, id);

      -- Counts the changes that operators make, so that a server sees those of other processes.
      CREATE TABLE pet_revision (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        revision INTEGER NOT NULL
      ) STRICT;
      INSERT INTO pet_revision VALUES (1, 0);

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
  },
  {
    version: 11,
    name: "keys that are switched off",
    worksWith: "1.0.0",
    sql: "ALTER TABLE api_keys ADD COLUMN disabled_at INTEGER",
  },
  {
    version: 12,
    name: "operators, their tokens, sessions and sign-in codes, operators in the audit trail",
    worksWith: "1.0.0",
    sql: `
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
      CREATE INDEX audit_by_operator ON audit (operator, at, id) WHERE operator IS NOT NULL;
    `,
  },
  {
    version: 13,
    name: "when orders were closed",
    worksWith: "1.0.0",
    // The column is NULL while the order is placed, and if an earlier release closed it.
    sql: "ALTER TABLE orders ADD COLUMN closed_at INTEGER",
  },
  {
    version: 14,
    name: "the secret of the servers in a table of its own",
    worksWith: "1.1.0",
    // The secret of the previous release is not taken over, because backups may contain it.
    sql: `
      CREATE TABLE server_secret (
        sole INTEGER PRIMARY KEY CHECK (sole = 1),
        secret TEXT NOT NULL
      ) STRICT;
      DELETE FROM server_settings WHERE name = 'server-secret';
    `,
  },
  {
    version: 15,
    name: "pets without their JSON, which statements write",
    worksWith: "1.2.0",
    sql: "ALTER TABLE pets DROP COLUMN entry",
  },
  {
    version: 16,
    name: "usage history without sums of all keys",
    worksWith: "1.2.0",
    sql: "DROP TABLE usage_totals",
  },
  {
    version: 17,
    name: "position of the webhook, announced expiries of keys",
    worksWith: "1.1.0",
    sql: `
      CREATE TABLE webhook (
        sole INTEGER PRIMARY KEY CHECK (sole = 1),
        source TEXT NOT NULL,
        position INTEGER NOT NULL,
        server TEXT,
        beat INTEGER NOT NULL DEFAULT 0,
        -- A JSON array of the last attempts.
        deliveries TEXT NOT NULL DEFAULT '[]'
      ) STRICT;
      -- The expiry of which the audit trail has an entry.
      ALTER TABLE api_keys ADD COLUMN announced_expiry INTEGER;
      CREATE INDEX api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL;
    `,
  },
  {
    version: 18,
    name: "limits of the plans and ban rules, which all servers share",
    worksWith: "1.1.0",
    // They are empty until a server starts.
    sql: `
      CREATE TABLE plans (
        name TEXT PRIMARY KEY CHECK (name IN ('free', 'pro', 'business', 'anonymous')),
        per_minute INTEGER NOT NULL CHECK (per_minute > 0),
        per_day INTEGER NOT NULL CHECK (per_day > 0)
      ) STRICT;
      CREATE TABLE ban_rules (
        sole INTEGER PRIMARY KEY CHECK (sole = 1),
        strikes INTEGER NOT NULL CHECK (strikes > 0),
        grace_ms INTEGER NOT NULL CHECK (grace_ms >= 0),
        length_ms INTEGER NOT NULL CHECK (length_ms > 0),
        max_length_ms INTEGER NOT NULL CHECK (max_length_ms >= length_ms)
      ) STRICT;
    `,
  },
  {
    version: 19,
    name: "expiry of operators, overlap of their tokens, who made a sign-in code",
    worksWith: "1.1.0",
    sql: `
      ALTER TABLE operators ADD COLUMN expires_at INTEGER;
      -- Until then a token that was replaced works. NULL: not at all.
      ALTER TABLE operator_tokens ADD COLUMN valid_until INTEGER;
      CREATE INDEX earlier_operator_tokens ON operator_tokens (operator_id, issued_at)
        WHERE valid_until IS NOT NULL;
      ALTER TABLE sign_in_codes ADD COLUMN made_by TEXT;
    `,
  },
  {
    version: 20,
    name: "pets by category",
    worksWith: "1.1.0",
    // New pets of 90 categories would change as many pages of an index that begins with the category: a create would
    // take 61 µs of CPU time instead of 48. With ranges of 2,048 identifiers first it takes 50. The status selects
    // among the pets of a category without reading them: with both filters and no match among 100,000 pets of the
    // category, a page, which delays other requests, takes 12 ms instead of 52.
    sql: "CREATE INDEX pets_by_category ON pets (id >> 11, category_id, id, status)",
  },
  {
    version: 21,
    name: "the token of each session and sign-in code of an operator",
    worksWith: "1.2.0",
    // With an overlap, the token of a session is unknown: its operator signs in again.
    sql: `
      ALTER TABLE operator_sessions ADD COLUMN token_hash TEXT;
      ALTER TABLE sign_in_codes ADD COLUMN token_hash TEXT;
      UPDATE operator_sessions SET token_hash = (
        SELECT hash FROM operator_tokens
          WHERE operator_tokens.operator_id = operator_sessions.operator_id AND replaced_at IS NULL
      ) WHERE NOT EXISTS (
        SELECT 1 FROM operator_tokens
          WHERE operator_tokens.operator_id = operator_sessions.operator_id AND valid_until IS NOT NULL
      );
    `,
  },
  {
    version: 22,
    name: "pets by category and status",
    worksWith: "1.2.0",
    // New pets of 90 categories would change as many pages of this index: a create would take 60 µs of CPU time instead
    // of 49. So they are recent at first, and enter it 1,024 at a time. No pet up to `recent_after` is recent. Release
    // 1.2.0 adds none that are. It names the index pets_by_category in its statements, and needs no more of it than the
    // ranges of identifiers; the next release can drop it.
    sql: `
      -- 1 or NULL. With a CHECK, putting a pet into the index would take 2.1 µs instead of 1.3.
      ALTER TABLE pets ADD COLUMN is_recent INTEGER;
      CREATE INDEX pets_by_category_and_status ON pets (category_id, status, id) WHERE is_recent IS NULL;
      ALTER TABLE pet_revision ADD COLUMN recent_after INTEGER NOT NULL DEFAULT 0;
      UPDATE pet_revision SET recent_after = (SELECT coalesce(max(id), 0) FROM pets);
      DROP INDEX pets_by_category;
      CREATE INDEX pets_by_category ON pets (id >> 11);
    `,
  },
  {
    version: 23,
    name: "the list of servers, and questions to them",
    worksWith: "1.1.0",
    // Times are those of the database. Servers of release 1.2.0 still use `server_secret`.
    sql: `
      CREATE TABLE servers (
        id TEXT PRIMARY KEY,
        report TEXT NOT NULL,
        reported_at INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE server_questions (
        id TEXT PRIMARY KEY,
        -- The identifier of a server or the name of a machine. NULL: any server.
        server TEXT,
        operation TEXT NOT NULL,
        query TEXT NOT NULL,
        asked_at INTEGER NOT NULL,
        taken_by TEXT,
        answer TEXT
      ) STRICT;
    `,
  },
  {
    version: 24,
    name: "audit trail by operator and action",
    worksWith: "1.2.0",
    sql: `CREATE INDEX audit_by_operator_and_action ON audit (operator, action, at, id)
      WHERE operator IS NOT NULL`,
  },
  {
    version: 25,
    name: "operators who sign in with a provider",
    worksWith: "1.2.0",
    sql: "ALTER TABLE operators ADD COLUMN subject TEXT",
  },
];
