/*
 * The steps of the releases, which nobody edits, because databases have taken them.
 *
 * The constraints repeat what the contract validates, so that a bug in the program causes an error instead of bad data.
 * Times are milliseconds since the epoch.
 *
 * On SQLite, tables use AUTOINCREMENT, so that an identifier is never used twice, even if its row is deleted.
 * Constraints use OR instead of IN, because SQLite builds a temporary table for the list at every insert
 * (`bun bench/store.ts`: 3.1 µs instead of 0.9).
 */

import type { ReleaseSteps } from "./migrations.ts";

export const RELEASED_STEPS: readonly ReleaseSteps[] = [
  {
    release: "1.3.0",
    steps: [
      {
        name: "the tables of release 1.3.0",
        sqlite: `
          CREATE TABLE pets (
            id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
            name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 1024),
            category_id INTEGER NOT NULL,
            status TEXT CHECK (status = 'available' OR status = 'pending' OR status = 'sold'),
            -- 1 or NULL. With a CHECK, putting a pet into the index would take 2.1 µs instead of 1.3.
            is_recent INTEGER
          ) STRICT;
          -- Pets without a status fit no filter, so they cost the index nothing.
          CREATE INDEX pets_by_status ON pets (status, id) WHERE status IS NOT NULL;
          -- New pets of 90 categories would change as many pages of this index: a create would take 60 µs of CPU time
          -- instead of 49. So they are recent at first, and enter it 1,024 at a time. No pet up to recent_after is recent.
          CREATE INDEX pets_by_category_and_status ON pets (category_id, status, id) WHERE is_recent IS NULL;
          CREATE INDEX pets_by_category ON pets (id >> 11);

          CREATE TABLE orders (
            id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
            pet_id INTEGER NOT NULL REFERENCES pets (id),
            status TEXT NOT NULL CHECK (status = 'placed' OR status = 'completed' OR status = 'cancelled'),
            created_at INTEGER NOT NULL,
            -- NULL: an earlier release placed the order and recorded no key. No key sees such an order.
            key_id INTEGER,
            -- NULL: the order is placed, or an earlier release closed it.
            closed_at INTEGER
          ) STRICT;
          CREATE INDEX orders_by_status ON orders (status, id);
          CREATE UNIQUE INDEX one_placed_order_per_pet ON orders (pet_id) WHERE status = 'placed';
          CREATE INDEX orders_by_key ON orders (key_id, id) WHERE key_id IS NOT NULL;
          CREATE INDEX orders_by_key_and_status ON orders (key_id, status, id) WHERE key_id IS NOT NULL;
          CREATE INDEX orders_by_pet ON orders (pet_id, id);

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
            owner TEXT,
            notes TEXT,
            -- A JSON array of texts.
            labels TEXT NOT NULL DEFAULT '[]',
            access TEXT NOT NULL DEFAULT 'write' CHECK (access IN ('read', 'write')),
            disabled_at INTEGER,
            -- The expiry of which the audit trail has an entry.
            announced_expiry INTEGER,
            CHECK ((per_minute IS NULL) = (per_day IS NULL)),
            CHECK (per_minute IS NULL OR plan = 'enterprise')
          ) STRICT;
          CREATE UNIQUE INDEX api_keys_by_revision ON api_keys (revision);
          CREATE INDEX api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL;

          CREATE TABLE key_secrets (
            hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
            key_id INTEGER NOT NULL REFERENCES api_keys (id),
            valid_until INTEGER,
            -- NULL: an earlier release stored the secret.
            hint TEXT,
            issued_at INTEGER
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
            operator TEXT,
            CHECK ((target_kind IS NULL) = (target_id IS NULL))
          ) STRICT;
          CREATE INDEX audit_by_time ON audit (at, id);
          CREATE INDEX audit_by_target ON audit (target_kind, target_id, at, id) WHERE target_kind IS NOT NULL;
          CREATE INDEX audit_by_action ON audit (action, at, id);
          CREATE INDEX audit_by_actor ON audit (actor, at, id);
          CREATE INDEX audit_by_action_and_actor ON audit (action, actor, at, id);
          CREATE INDEX audit_by_operator ON audit (operator, at, id) WHERE operator IS NOT NULL;
          CREATE INDEX audit_by_operator_and_action ON audit (operator, action, at, id) WHERE operator IS NOT NULL;

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

          CREATE TABLE pet_revision (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            revision INTEGER NOT NULL,
            recent_after INTEGER NOT NULL DEFAULT 0
          ) STRICT;
          INSERT INTO pet_revision VALUES (1, 0, 0);

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

          CREATE TABLE operators (
            id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
            name TEXT NOT NULL CHECK (length(name) > 0),
            role TEXT NOT NULL CHECK (role IN ('metrics', 'viewer', 'support', 'admin')),
            created_at INTEGER NOT NULL,
            last_used_at INTEGER,
            revoked_at INTEGER,
            expires_at INTEGER,
            subject TEXT
          ) STRICT;
          CREATE UNIQUE INDEX operators_by_name ON operators (name) WHERE revoked_at IS NULL;

          -- Those that were replaced stay: a token that was replaced is never taken for a new one.
          CREATE TABLE operator_tokens (
            hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
            operator_id INTEGER NOT NULL REFERENCES operators (id),
            hint TEXT NOT NULL,
            issued_at INTEGER NOT NULL,
            replaced_at INTEGER,
            -- Until then a token that was replaced works. NULL: not at all.
            valid_until INTEGER
          ) STRICT, WITHOUT ROWID;
          CREATE UNIQUE INDEX current_operator_tokens ON operator_tokens (operator_id) WHERE replaced_at IS NULL;
          CREATE INDEX earlier_operator_tokens ON operator_tokens (operator_id, issued_at) WHERE valid_until IS NOT NULL;

          CREATE TABLE operator_sessions (
            cookie_hash TEXT PRIMARY KEY CHECK (length(cookie_hash) = 64),
            secret_hash TEXT NOT NULL CHECK (length(secret_hash) = 64),
            operator_id INTEGER REFERENCES operators (id),
            token_check TEXT,
            created_at INTEGER NOT NULL,
            ends_at INTEGER NOT NULL,
            token_hash TEXT,
            CHECK ((operator_id IS NULL) = (token_check IS NOT NULL))
          ) STRICT, WITHOUT ROWID;

          CREATE TABLE sign_in_codes (
            code_hash TEXT PRIMARY KEY CHECK (length(code_hash) = 64),
            operator_id INTEGER REFERENCES operators (id),
            ends_at INTEGER NOT NULL,
            made_by TEXT,
            token_hash TEXT
          ) STRICT, WITHOUT ROWID;

          CREATE TABLE server_secret (
            sole INTEGER PRIMARY KEY CHECK (sole = 1),
            secret TEXT NOT NULL
          ) STRICT;

          CREATE TABLE webhook (
            sole INTEGER PRIMARY KEY CHECK (sole = 1),
            source TEXT NOT NULL,
            position INTEGER NOT NULL,
            server TEXT,
            beat INTEGER NOT NULL DEFAULT 0,
            -- A JSON array of the last attempts.
            deliveries TEXT NOT NULL DEFAULT '[]'
          ) STRICT;

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

          -- Times are those of the database.
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
        postgres: `
          CREATE TABLE pets (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1024),
            category_id bigint NOT NULL,
            status text CHECK (status IN ('available', 'pending', 'sold'))
          );
          -- Pets without a status fit no filter, so they cost the index nothing.
          CREATE INDEX pets_by_status ON pets (status, id) WHERE status IS NOT NULL;
          CREATE INDEX pets_by_category ON pets (category_id, id);
          CREATE INDEX pets_by_category_and_status ON pets (category_id, status COLLATE "C", id);

          CREATE TABLE orders (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            pet_id bigint NOT NULL REFERENCES pets (id),
            status text NOT NULL CHECK (status IN ('placed', 'completed', 'cancelled')),
            created_at bigint NOT NULL,
            -- NULL: an earlier release placed the order and recorded no key. No key sees such an order.
            key_id bigint,
            -- NULL: the order is placed, or an earlier release closed it.
            closed_at bigint
          );
          CREATE INDEX orders_by_status ON orders (status, id);
          CREATE UNIQUE INDEX one_placed_order_per_pet ON orders (pet_id) WHERE status = 'placed';
          CREATE INDEX orders_by_key ON orders (key_id, id) WHERE key_id IS NOT NULL;
          CREATE INDEX orders_by_key_and_status ON orders (key_id, status COLLATE "C", id) WHERE key_id IS NOT NULL;
          CREATE INDEX orders_by_pet ON orders (pet_id, id);

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
            name text NOT NULL CHECK (name <> ''),
            plan text NOT NULL CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
            per_minute bigint CHECK (per_minute > 0),
            per_day bigint CHECK (per_day > 0),
            created_at bigint NOT NULL,
            expires_at bigint,
            revoked_at bigint,
            pardoned_at bigint,
            revision bigint NOT NULL UNIQUE,
            unban_revision bigint,
            owner text,
            notes text,
            -- A JSON array of texts.
            labels text NOT NULL DEFAULT '[]',
            access text NOT NULL DEFAULT 'write' CHECK (access IN ('read', 'write')),
            disabled_at bigint,
            -- The expiry of which the audit trail has an entry.
            announced_expiry bigint,
            CHECK ((per_minute IS NULL) = (per_day IS NULL)),
            CHECK (per_minute IS NULL OR plan = 'enterprise')
          );
          CREATE INDEX api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL;

          CREATE TABLE key_secrets (
            hash text PRIMARY KEY CHECK (length(hash) = 64),
            key_id bigint NOT NULL REFERENCES api_keys (id),
            valid_until bigint,
            -- NULL: an earlier release stored the secret.
            hint text,
            issued_at bigint
          );
          CREATE INDEX key_secrets_by_key ON key_secrets (key_id);

          CREATE TABLE key_revision (
            sole integer PRIMARY KEY CHECK (sole = 1),
            revision bigint NOT NULL
          );
          INSERT INTO key_revision VALUES (1, 0);

          CREATE TABLE server_settings (
            name text PRIMARY KEY,
            value text NOT NULL
          );

          CREATE TABLE audit (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            at bigint NOT NULL,
            actor text NOT NULL CHECK (actor <> ''),
            actor_name text,
            action text NOT NULL CHECK (action <> ''),
            target_kind text,
            target_id bigint,
            -- JSON objects with the fields that changed.
            values_before text,
            values_after text,
            operator text,
            CHECK ((target_kind IS NULL) = (target_id IS NULL))
          );
          CREATE INDEX audit_by_time ON audit (at, id);
          CREATE INDEX audit_by_target ON audit (target_kind, target_id, at, id) WHERE target_kind IS NOT NULL;
          CREATE INDEX audit_by_action ON audit (action, at, id);
          CREATE INDEX audit_by_actor ON audit (actor, at, id);
          CREATE INDEX audit_by_action_and_actor ON audit (action, actor, at, id);
          CREATE INDEX audit_by_operator ON audit (operator, at, id) WHERE operator IS NOT NULL;
          CREATE INDEX audit_by_operator_and_action ON audit (operator, action, at, id) WHERE operator IS NOT NULL;
          -- The trigger comes before the identifier is assigned, so that identifiers become visible in ascending order. The
          -- lock is that of nextIdLock.
          CREATE FUNCTION lock_audit_ids() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock(1885697139, TG_RELID::int);
        RETURN NULL;
      END $$;
          CREATE TRIGGER lock_audit_ids BEFORE INSERT ON audit FOR EACH STATEMENT EXECUTE FUNCTION lock_audit_ids();

          -- The free space in each page is for the rows of the current hour and day, which are updated every two seconds.
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
          ) WITH (fillfactor = 75);

          CREATE TABLE usage_days (
            start bigint NOT NULL,
            key_id bigint NOT NULL,
            admitted bigint NOT NULL,
            limited bigint NOT NULL,
            banned bigint NOT NULL,
            errors bigint NOT NULL,
            operations jsonb NOT NULL,
            PRIMARY KEY (start, key_id)
          ) WITH (fillfactor = 75);

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

          CREATE TABLE key_last_used (
            key_id bigint PRIMARY KEY,
            last_used_at bigint NOT NULL
          ) WITH (fillfactor = 75);

          -- The last batch that each server process has added, so that none is added twice.
          CREATE TABLE usage_batches (
            writer text PRIMARY KEY,
            sequence bigint NOT NULL,
            hour bigint NOT NULL
          );

          CREATE TABLE deprecated_use (
            operation text COLLATE "C" NOT NULL,
            key_id bigint NOT NULL,
            last_used_at bigint NOT NULL,
            PRIMARY KEY (operation, key_id)
          ) WITH (fillfactor = 75);

          -- How far each import of a file has come.
          CREATE TABLE imports (
            fingerprint text PRIMARY KEY,
            source text NOT NULL,
            options text NOT NULL,
            started_at bigint NOT NULL,
            finished_at bigint,
            rows_done bigint NOT NULL DEFAULT 0,
            added bigint NOT NULL DEFAULT 0,
            replaced bigint NOT NULL DEFAULT 0,
            skipped bigint NOT NULL DEFAULT 0,
            rejected bigint NOT NULL DEFAULT 0,
            rejects_bytes bigint NOT NULL DEFAULT 0
          );

          CREATE TABLE operators (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name text NOT NULL CHECK (name <> ''),
            role text NOT NULL CHECK (role IN ('metrics', 'viewer', 'support', 'admin')),
            created_at bigint NOT NULL,
            last_used_at bigint,
            revoked_at bigint,
            expires_at bigint,
            subject text
          );
          CREATE UNIQUE INDEX operators_by_name ON operators (name) WHERE revoked_at IS NULL;

          -- Those that were replaced stay: a token that was replaced is never taken for a new one.
          CREATE TABLE operator_tokens (
            hash text PRIMARY KEY CHECK (length(hash) = 64),
            operator_id bigint NOT NULL REFERENCES operators (id),
            hint text NOT NULL,
            issued_at bigint NOT NULL,
            replaced_at bigint,
            -- Until then a token that was replaced works. NULL: not at all.
            valid_until bigint
          );
          CREATE UNIQUE INDEX current_operator_tokens ON operator_tokens (operator_id) WHERE replaced_at IS NULL;
          CREATE INDEX earlier_operator_tokens ON operator_tokens (operator_id, issued_at) WHERE valid_until IS NOT NULL;

          CREATE TABLE operator_sessions (
            cookie_hash text PRIMARY KEY CHECK (length(cookie_hash) = 64),
            secret_hash text NOT NULL CHECK (length(secret_hash) = 64),
            operator_id bigint REFERENCES operators (id),
            token_check text,
            created_at bigint NOT NULL,
            ends_at bigint NOT NULL,
            token_hash text,
            CHECK ((operator_id IS NULL) = (token_check IS NOT NULL))
          );

          CREATE TABLE sign_in_codes (
            code_hash text PRIMARY KEY CHECK (length(code_hash) = 64),
            operator_id bigint REFERENCES operators (id),
            ends_at bigint NOT NULL,
            made_by text,
            token_hash text
          );

          CREATE TABLE server_secret (
            sole integer PRIMARY KEY CHECK (sole = 1),
            secret text NOT NULL
          );

          CREATE TABLE webhook (
            sole integer PRIMARY KEY CHECK (sole = 1),
            source text NOT NULL,
            position bigint NOT NULL,
            server text,
            beat bigint NOT NULL DEFAULT 0,
            -- A JSON array of the last attempts.
            deliveries text NOT NULL DEFAULT '[]'
          );

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

          -- Half of each page is free, so that an update changes no index.
          CREATE TABLE quotas (
            key_id bigint PRIMARY KEY,
            -- As toStored makes them, by the clock of the database.
            numbers bigint[] NOT NULL,
            expires_at bigint NOT NULL
          ) WITH (fillfactor = 50);
          CREATE INDEX quotas_by_expiry ON quotas (expires_at, key_id);

          -- Times are those of the database. A crash may empty both tables: servers report again within a second, and
          -- whoever asks asks again.
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
        worksWith: "1.3.0",
      },
    ],
  },
];
