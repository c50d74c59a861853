import type { Migration } from "../migration.ts";

/**
 * The same tables as on the embedded engine. What the constraints say, the contract has checked before; they are here
 * so that a mistake in the program fails instead of being kept. Times are milliseconds since the epoch, as everywhere.
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
];
