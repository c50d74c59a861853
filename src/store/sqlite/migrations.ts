import type { Migration } from "../migration.ts";

/**
 * What the constraints say, the contract has checked before; they are here so that a mistake in the program fails
 * instead of being kept. AUTOINCREMENT, because an identifier must not be given twice even if its row ever goes.
 * OR and not IN: SQLite builds a table for the list each time, at three times the cost of the insert itself.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "animals, orders and attempts",
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
        created_at INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX orders_by_status ON orders (status, id);
      CREATE UNIQUE INDEX one_placed_order_per_pet ON orders (pet_id) WHERE status = 'placed';

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
    `,
  },
  {
    version: 2,
    name: "API keys",
    sql: `
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
    `,
  },
];
