import { SQL } from "bun";
import { expect, spyOn, test } from "bun:test";
import { version } from "../../../package.json";
import { scheduler } from "../../../src/runtime/scheduler.ts";
import { POSTGRES_MIGRATIONS } from "../../../src/store/postgres/migrations.ts";
import {
  ADD_SESSIONS,
  EXPECTED_TOKENS,
  SESSION_STEP,
  sessionTokens,
} from "../../store/sessions-before-migration.ts";
import { until } from "../../timing.ts";
import { createDatabase, type TestDatabase } from "./postgres-database.ts";

/** A database with a pet, an order and a key, as it was before a migration. */
async function databaseBefore(migration: string): Promise<TestDatabase> {
  const database = await createDatabase();
  await database.sql`CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(), oldest_release text)`;
  const steps = POSTGRES_MIGRATIONS.findIndex(({ name }) => name === migration);
  for (const step of POSTGRES_MIGRATIONS.slice(0, steps)) {
    await database.sql.unsafe("sql" in step ? step.sql : "");
    await database.sql`INSERT INTO schema_migrations (version, name) VALUES (${step.version}, ${step.name})`;
  }
  await database.sql`INSERT INTO pets (name, category_id) VALUES ('Rex', 1)`;
  await database.sql`INSERT INTO orders (pet_id, status, created_at) VALUES (1, 'placed', 0)`;
  await database.sql`INSERT INTO api_keys (name, plan, created_at, revision) VALUES ('shop', 'free', 0, 1)`;
  return database;
}

test("newer tables are rejected unless they say that this release can run on them", async () => {
  await using database = await createDatabase();
  await (await database.open()).close();
  const insert = "INSERT INTO schema_migrations (version, name, oldest_release)";
  await database.sql.unsafe(`${insert} VALUES (998, 'compatible', '1.0.0')`);
  await (await database.open()).close();
  await database.sql.unsafe(`${insert} VALUES (999, 'incompatible', '999.1.0')`);
  await expect(database.open()).rejects.toThrow(
    `: the tables need petstore 999.1.0 or newer; this is petstore ${version}`,
  );
});

test("each step stores the oldest release that can run on the tables", async () => {
  await using database = await databaseBefore("when orders were closed");
  await database.sql`ALTER TABLE schema_migrations DROP COLUMN oldest_release`;
  await database.open();
  const steps = await database.sql`SELECT version, oldest_release FROM schema_migrations WHERE version >= 15`;
  const expected = POSTGRES_MIGRATIONS.filter(({ version }) => version >= 15);
  expect([...steps]).toEqual(
    expected.map(({ version, oldestRelease }) => ({ version, oldest_release: oldestRelease })),
  );
});

test("a migration that fails is rolled back", async () => {
  await using database = await createDatabase();
  await database.sql`CREATE TABLE orders (id int)`;
  await expect(database.open()).rejects.toThrow(/"orders" already exists/);
  const [{ exists }] = await database.sql`SELECT to_regclass('pets') IS NOT NULL AS exists`;
  expect(exists).toBe(false);
});

test("a migration that waits for the lock of a table lets other sessions use the table", async () => {
  await using database = await databaseBefore("when orders were closed");
  const older = new SQL(database.url, { max: 1 });
  let opening: Promise<unknown> = Promise.resolve();
  // The transaction holds its locks as pg_dump does while it runs.
  await database.sql.begin("isolation level repeatable read read only", async (tx) => {
    await tx`SELECT count(*) FROM orders`;
    opening = database.open();
    const waitsForLock = async () =>
      (await older`SELECT FROM pg_locks WHERE NOT granted AND relation = 'orders'::regclass`).length > 0;
    await until(waitsForLock, 5_000);
    // Waits for as long as the migration stands before it in the queue.
    await older`UPDATE orders SET status = 'completed' WHERE id = 1`;
    const [{ version }] = await older`SELECT max(version) AS version FROM schema_migrations`;
    expect(version).toBe(14);
  });
  await opening;
  await older.close({ timeout: 0 });
  expect(await database.sql`SELECT FROM schema_migrations`).toHaveLength(POSTGRES_MIGRATIONS.length);
});

test("a session of an earlier release gets the token of its operator, unless it may be one of a replaced token", async () => {
  await using database = await databaseBefore(SESSION_STEP);
  for (const statement of ADD_SESSIONS) await database.sql.unsafe(statement);
  expect(await sessionTokens(await database.open())).toEqual(EXPECTED_TOKENS);
});

test("a start that was interrupted while it built an index builds it again", async () => {
  await using database = await databaseBefore("orders by pet");
  await database.sql`CREATE INDEX orders_by_pet ON orders (pet_id, id)`;
  await database.sql`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'orders_by_pet'::regclass`;
  await database.open();
  const indexes = await database.sql`SELECT indexrelid::regclass::text AS name FROM pg_index
    WHERE indrelid = 'orders'::regclass AND indisvalid ORDER BY name`;
  expect(indexes.map(({ name }: { name: string }) => name)).toEqual([
    "one_placed_order_per_pet",
    "orders_by_key",
    "orders_by_key_and_status",
    "orders_by_pet",
    "orders_by_status",
    "orders_pkey",
  ]);
});

test("a start fails if the database hangs after it has built an index", async () => {
  await using database = await databaseBefore("audit trail by operator");
  using timers = spyOn(scheduler, "setTimeout");
  // A minute takes two seconds.
  timers.mockImplementation((work, ms) => setTimeout(work, ms / 30));
  await database.sql.begin(async (tx) => {
    await tx`LOCK TABLE schema_migrations IN SHARE MODE`;
    await expect(database.open()).rejects.toThrow("no response within 60000 ms");
  });
});
