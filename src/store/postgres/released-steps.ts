import type { PostgresMigration } from "../sql/migrations.ts";
import { LOCK_SPACE } from "./locks.ts";

/**
 * The steps make the same tables as in SQLite. The constraints repeat what the contract validates, so that a bug in the
 * program causes an error instead of bad data. Times are milliseconds since the epoch.
 *
 * Servers of the previous release serve requests during a migration and after it, so every new column can be null.
 * The table usage_sums is unused but remains, because release 1.1.0 writes to it.
 */
export const RELEASED_ON_POSTGRES: readonly PostgresMigration[] = [
  {
    version: 6,
    name: "animals, orders and attempts, API keys, server settings",
    worksWith: "0.9.0",
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
        status TEXT NOT NULL CHECK (status IN ('placed', 'completed', 'cancelled')),
        created_at bigint NOT NULL,
        -- NULL: an earlier release placed the order and recorded no key. No key sees such an order.
        key_id bigint
      );
      CREATE INDEX orders_by_status ON orders (status, id);
      CREATE UNIQUE INDEX one_placed_order_per_pet ON orders (pet_id) WHERE status = 'placed';
      CREATE INDEX orders_by_key ON orders (key_id, id) WHERE key_id IS NOT NULL;
      CREATE INDEX orders_by_key_and_status ON orders (key_id, status COLLATE "C", id) WHERE key_id IS NOT NULL;

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

      CREATE TABLE api_keys (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name TEXT NOT NULL CHECK (name <> ''),
        plan TEXT NOT NULL CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
        per_minute bigint CHECK (per_minute > 0),
        per_day bigint CHECK (per_day > 0),
        created_at bigint NOT NULL,
        expires_at bigint,
        revoked_at bigint,
        pardoned_at bigint,
        revision bigint NOT NULL,
        unban_revision bigint,
        CHECK ((per_minute IS NULL) = (per_day IS NULL)),
        CHECK (per_minute IS NULL OR plan = 'enterprise')
      );

      CREATE TABLE key_secrets (
        hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
        key_id bigint NOT NULL REFERENCES api_keys (id),
        valid_until bigint
      );
      CREATE INDEX key_secrets_by_key ON key_secrets (key_id);

      CREATE TABLE server_settings (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
      );
      ALTER TABLE api_keys ADD UNIQUE (revision);

      CREATE TABLE key_revision (
        sole integer PRIMARY KEY CHECK (sole = 1),
        revision bigint NOT NULL
      );
      INSERT INTO key_revision VALUES (1, 0);
    `,
  },
  {
    version: 8,
    name: "owners, notes, labels and access of keys, hints of secrets, audit trail, usage history",
    worksWith: "1.0.0",
    // Servers of the previous release insert keys and secrets without the new columns. The free space in each page is
    // for the rows of the current hour and day, which are updated every two seconds.
    sql: `
      ALTER TABLE api_keys ADD COLUMN owner TEXT;
      ALTER TABLE api_keys ADD COLUMN notes TEXT;
      -- A JSON array of texts.
      ALTER TABLE api_keys ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
      ALTER TABLE api_keys ADD COLUMN access TEXT NOT NULL DEFAULT 'write' CHECK (access IN ('read', 'write'));
      -- NULL: an earlier release stored the secret.
      ALTER TABLE key_secrets ADD COLUMN hint TEXT;
      ALTER TABLE key_secrets ADD COLUMN issued_at bigint;

      CREATE TABLE audit (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at bigint NOT NULL,
        actor TEXT NOT NULL CHECK (actor <> ''),
        actor_name TEXT,
        action TEXT NOT NULL CHECK (action <> ''),
        target_kind TEXT,
        target_id bigint,
        -- JSON objects with the fields that changed.
        values_before TEXT,
        values_after TEXT,
        CHECK ((target_kind IS NULL) = (target_id IS NULL))
      );
      CREATE INDEX audit_by_time ON audit (at, id);
      CREATE INDEX audit_by_target ON audit (target_kind, target_id, at, id) WHERE target_kind IS NOT NULL;
      CREATE INDEX audit_by_action ON audit (action, at, id);
      CREATE INDEX audit_by_actor ON audit (actor, at, id);
      CREATE INDEX audit_by_action_and_actor ON audit (action, actor, at, id);

      -- One row per key and interval, in the order of time: counts are added to the rows at the end of the table.
      CREATE TABLE usage_hours (
        start bigint NOT NULL,
        key_id bigint NOT NULL,
        admitted bigint NOT NULL,
        limited bigint NOT NULL,
        banned bigint NOT NULL,
        errors bigint NOT NULL,
        -- Admitted requests and errors by operation, as JSON.
        operations jsonb NOT NULL,
        PRIMARY KEY (start, key_id)
      );
      CREATE TABLE usage_days (
        start bigint NOT NULL,
        key_id bigint NOT NULL,
        admitted bigint NOT NULL,
        limited bigint NOT NULL,
        banned bigint NOT NULL,
        errors bigint NOT NULL,
        operations jsonb NOT NULL,
        PRIMARY KEY (start, key_id)
      );

      CREATE TABLE key_last_used (
        key_id bigint PRIMARY KEY,
        last_used_at bigint NOT NULL
      );

      -- The last batch that each server process has added, so that none is added twice.
      CREATE TABLE usage_batches (
        writer TEXT PRIMARY KEY,
        sequence bigint NOT NULL,
        hour bigint NOT NULL
      );
      -- Sums of 4 hours and of 5 days: a sum over a longer period reads fewer rows.
      CREATE TABLE usage_sums (
        length bigint NOT NULL,
        start bigint NOT NULL,
        key_id bigint NOT NULL,
        admitted bigint NOT NULL,
        limited bigint NOT NULL,
        banned bigint NOT NULL,
        errors bigint NOT NULL,
        PRIMARY KEY (length, start, key_id)
      ) WITH (fillfactor = 75);
      ALTER TABLE usage_hours SET (fillfactor = 75);
      ALTER TABLE usage_days SET (fillfactor = 75);
      ALTER TABLE key_last_used SET (fillfactor = 75);
    `,
  },
  {
    version: 9,
    name: "orders by pet",
    worksWith: "1.0.0",
    sql: [
      "DROP INDEX CONCURRENTLY IF EXISTS orders_by_pet",
      "CREATE INDEX CONCURRENTLY orders_by_pet ON orders (pet_id, id)",
    ],
  },
  {
    version: 11,
    name: "deprecated operations of keys, imports",
    worksWith: "1.0.0",
    sql: `
      CREATE TABLE deprecated_use (
        operation TEXT NOT NULL,
        key_id bigint NOT NULL,
        last_used_at bigint NOT NULL,
        PRIMARY KEY (operation, key_id)
      );

      -- How far each import of a file has come.
      CREATE TABLE imports (
        fingerprint TEXT PRIMARY KEY,
        source TEXT NOT NULL,
        options TEXT NOT NULL,
        started_at bigint NOT NULL,
        finished_at bigint,
        rows_done bigint NOT NULL DEFAULT 0,
        added bigint NOT NULL DEFAULT 0,
        replaced bigint NOT NULL DEFAULT 0,
        skipped bigint NOT NULL DEFAULT 0,
        rejected bigint NOT NULL DEFAULT 0,
        rejects_bytes bigint NOT NULL DEFAULT 0
      );
      ALTER TABLE deprecated_use ALTER COLUMN operation TYPE text COLLATE "C";
      ALTER TABLE deprecated_use SET (fillfactor = 75);
    `,
  },
  {
    version: 12,
    name: "keys that are switched off",
    worksWith: "1.0.0",
    sql: "ALTER TABLE api_keys ADD COLUMN disabled_at bigint",
  },
  {
    version: 13,
    name: "operators, their tokens, sessions and sign-in codes, operators in the audit trail",
    worksWith: "1.0.0",
    sql: `
      CREATE TABLE operators (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name TEXT NOT NULL CHECK (name <> ''),
        role TEXT NOT NULL CHECK (role IN ('metrics', 'viewer', 'support', 'admin')),
        created_at bigint NOT NULL,
        last_used_at bigint,
        revoked_at bigint
      );
      CREATE UNIQUE INDEX operators_by_name ON operators (name) WHERE revoked_at IS NULL;

      -- Those that were replaced stay: a token that was replaced is never taken for a new one.
      CREATE TABLE operator_tokens (
        hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
        operator_id bigint NOT NULL REFERENCES operators (id),
        hint TEXT NOT NULL,
        issued_at bigint NOT NULL,
        replaced_at bigint
      );
      CREATE UNIQUE INDEX current_operator_tokens ON operator_tokens (operator_id) WHERE replaced_at IS NULL;

      -- Of the operator whose token is a setting, operator_id is NULL.
      CREATE TABLE operator_sessions (
        cookie_hash TEXT PRIMARY KEY CHECK (length(cookie_hash) = 64),
        secret_hash TEXT NOT NULL CHECK (length(secret_hash) = 64),
        operator_id bigint REFERENCES operators (id),
        token_check TEXT,
        created_at bigint NOT NULL,
        ends_at bigint NOT NULL,
        CHECK ((operator_id IS NULL) = (token_check IS NOT NULL))
      );
      CREATE TABLE sign_in_codes (
        code_hash TEXT PRIMARY KEY CHECK (length(code_hash) = 64),
        operator_id bigint REFERENCES operators (id),
        ends_at bigint NOT NULL
      );

      ALTER TABLE audit ADD COLUMN operator TEXT;
    `,
  },
  {
    version: 14,
    name: "audit trail by operator",
    worksWith: "1.0.0",
    sql: [
      "DROP INDEX CONCURRENTLY IF EXISTS audit_by_operator",
      "CREATE INDEX CONCURRENTLY audit_by_operator ON audit (operator, at, id) WHERE operator IS NOT NULL",
    ],
  },
  {
    version: 15,
    name: "when orders were closed",
    worksWith: "1.0.0",
    // The column is NULL while the order is placed, and if an earlier release closed it.
    sql: "ALTER TABLE orders ADD COLUMN closed_at bigint",
  },
  {
    version: 16,
    name: "the secret of the servers in a table of its own",
    worksWith: "1.1.0",
    // The secret of the previous release is not taken over, because backups may contain it.
    sql: `
      CREATE TABLE server_secret (
        sole integer PRIMARY KEY CHECK (sole = 1),
        secret text NOT NULL
      );
      DELETE FROM server_settings WHERE name = 'server-secret';
    `,
  },
  {
    version: 17,
    name: "position of the webhook, announced expiries of keys, identifiers of audit entries in order",
    worksWith: "1.1.0",
    // The trigger comes before the identifier is assigned, so that identifiers become visible in ascending order, also
    // those of servers of the release before. The lock is that of nextIdLock.
    sql: `
      CREATE TABLE webhook (
        sole integer PRIMARY KEY CHECK (sole = 1),
        source text NOT NULL,
        position bigint NOT NULL,
        server text,
        beat bigint NOT NULL DEFAULT 0,
        -- A JSON array of the last attempts.
        deliveries text NOT NULL DEFAULT '[]'
      );
      -- The expiry of which the audit trail has an entry.
      ALTER TABLE api_keys ADD COLUMN announced_expiry bigint;

      CREATE FUNCTION lock_audit_ids() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock(${LOCK_SPACE}, TG_RELID::int);
        RETURN NULL;
      END $$;
      CREATE TRIGGER lock_audit_ids BEFORE INSERT ON audit FOR EACH STATEMENT EXECUTE FUNCTION lock_audit_ids();
    `,
  },
  {
    version: 18,
    name: "keys by expiry",
    worksWith: "1.1.0",
    sql: [
      "DROP INDEX CONCURRENTLY IF EXISTS api_keys_by_expiry",
      "CREATE INDEX CONCURRENTLY api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL",
    ],
  },
  {
    version: 19,
    name: "limits of the plans and ban rules, which all servers share",
    worksWith: "1.1.0",
    // They are empty until a server starts.
    sql: `
      CREATE TABLE plans (
        name text PRIMARY KEY CHECK (name IN ('free', 'pro', 'business', 'anonymous')),
        per_minute bigint NOT NULL CHECK (per_minute > 0),
        per_day bigint NOT NULL CHECK (per_day > 0)
      );
      CREATE TABLE ban_rules (
        sole integer PRIMARY KEY CHECK (sole = 1),
        strikes bigint NOT NULL CHECK (strikes > 0),
        grace_ms bigint NOT NULL CHECK (grace_ms >= 0),
        length_ms bigint NOT NULL CHECK (length_ms > 0),
        max_length_ms bigint NOT NULL CHECK (max_length_ms >= length_ms)
      );
    `,
  },
  {
    version: 20,
    name: "expiry of operators, overlap of their tokens, who made a sign-in code",
    worksWith: "1.1.0",
    sql: `
      ALTER TABLE operators ADD COLUMN expires_at bigint;
      -- Until then a token that was replaced works. NULL: not at all.
      ALTER TABLE operator_tokens ADD COLUMN valid_until bigint;
      CREATE INDEX earlier_operator_tokens ON operator_tokens (operator_id, issued_at)
        WHERE valid_until IS NOT NULL;
      ALTER TABLE sign_in_codes ADD COLUMN made_by TEXT;
    `,
  },
  {
    version: 21,
    name: "pets by category",
    worksWith: "1.1.0",
    sql: [
      "DROP INDEX CONCURRENTLY IF EXISTS pets_by_category",
      "CREATE INDEX CONCURRENTLY pets_by_category ON pets (category_id, id)",
    ],
  },
  {
    version: 22,
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
    version: 23,
    name: "pets by category and status",
    worksWith: "1.2.0",
    sql: [
      "DROP INDEX CONCURRENTLY IF EXISTS pets_by_category_and_status",
      `CREATE INDEX CONCURRENTLY pets_by_category_and_status ON pets (category_id, status COLLATE "C", id)`,
    ],
  },
  {
    version: 24,
    name: "the list of servers, and questions to them",
    worksWith: "1.1.0",
    // Times are those of the database. Servers of release 1.2.0 still use `server_secret`. A crash may empty both:
    // servers report again within a second, and whoever asks asks again.
    sql: `
      CREATE UNLOGGED TABLE servers (
        id text PRIMARY KEY,
        report text NOT NULL,
        reported_at bigint NOT NULL
      );
      CREATE UNLOGGED TABLE server_questions (
        id text PRIMARY KEY,
        -- The identifier of a server or the name of a machine. NULL: any server.
        server text,
        operation text NOT NULL,
        query text NOT NULL,
        asked_at bigint NOT NULL,
        taken_by text,
        answer text
      );
    `,
  },
  {
    version: 25,
    name: "audit trail by operator and action",
    worksWith: "1.2.0",
    sql: [
      "DROP INDEX CONCURRENTLY IF EXISTS audit_by_operator_and_action",
      `CREATE INDEX CONCURRENTLY audit_by_operator_and_action ON audit (operator, action, at, id)
        WHERE operator IS NOT NULL`,
    ],
  },
  {
    version: 26,
    name: "rate limits of keys",
    worksWith: "1.1.0",
    // Half of each page is free, so that an update changes no index.
    sql: `
      CREATE TABLE quotas (
        key_id bigint PRIMARY KEY,
        -- As toStored makes them, by the clock of the database.
        numbers bigint[] NOT NULL,
        expires_at bigint NOT NULL
      ) WITH (fillfactor = 50);
      CREATE INDEX quotas_by_expiry ON quotas (expires_at, key_id);
    `,
  },
  {
    version: 27,
    name: "operators who sign in with a provider",
    worksWith: "1.2.0",
    sql: "ALTER TABLE operators ADD COLUMN subject text",
  },
];
