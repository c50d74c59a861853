import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import type { Store } from "../../../src/domain/ports.ts";
import { MIGRATIONS as POSTGRES } from "../../../src/store/postgres/migrations.ts";
import { openDatabase } from "../../../src/store/sqlite/connection.ts";
import { MIGRATIONS as SQLITE } from "../../../src/store/sqlite/migrations.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite-store.ts";
import { idsOf, rejectionCode } from "../../conformance/store-fixture.ts";
import { createDatabase, type TestDatabase } from "./postgres-database.ts";
import { temporaryFolder } from "../../store/temporary-folder.ts";

const STEP = "keys of orders";
const stepsBefore = (steps: readonly { readonly name: string }[]) =>
  steps.findIndex(({ name }) => name === STEP);

/** As earlier releases wrote them. */
const addPets = (n: number) =>
  `INSERT INTO pets (name, category_id) VALUES ${Array.from({ length: n }, () => "('Rex', 1)").join(", ")}`;
const addOrder = (petId: number) =>
  `INSERT INTO orders (pet_id, status, created_at) VALUES (${petId}, 'placed', 0)`;
const addAttempt = (operation: string, keyId: number, id: number) =>
  `INSERT INTO attempts (operation, key_id, idempotency_key, fingerprint, resource_id, body, created_at)
   VALUES ('${operation}', ${keyId}, '${id}', 'f', ${id}, '{}', 0)`;
const addKey = (revision: number) =>
  `INSERT INTO api_keys (name, plan, created_at, revision) VALUES ('shop', 'free', 0, ${revision})`;

/** Orders 1 to 4; the keys of 2 and 3 are known from their idempotency records. */
const ORDERS = [
  addPets(9),
  ...[1, 2, 3, 4].map(addOrder),
  addAttempt("placeOrder", 7, 2),
  addAttempt("placeOrder", 8, 3),
  addAttempt("createPet", 9, 4),
];

async function expectOwners(store: Store, owners: Record<number, bigint[]>): Promise<void> {
  for (const [keyId, ids] of Object.entries(owners)) {
    expect([keyId, idsOf(await store.listOrders(Number(keyId), { limit: 100 }))]).toEqual([keyId, ids]);
    expect(idsOf(await store.listOrders(Number(keyId), { limit: 100, status: "placed" }))).toEqual(ids);
  }
}

function sqliteBefore(path: string, statements: readonly string[]): void {
  const options = { synchronous: "FULL", cacheKiB: 1024, busyTimeoutMs: 0 } as const;
  const connection = openDatabase(path, { ...options, migrations: SQLITE.slice(0, stepsBefore(SQLITE)) });
  for (const statement of statements) connection.run(statement);
  connection.close();
}

test("SQLite: earlier orders belong to the key of their idempotency record, and without one to no key", async () => {
  using folder = temporaryFolder();
  sqliteBefore(folder.path("a.db"), [...ORDERS, addKey(1), addKey(2)]);
  const { store, close } = openSqlite(folder.path("a.db"));
  await expectOwners(store, { 1: [], 2: [], 7: [2n], 8: [3n], 9: [] });
  expect(rejectionCode(await store.updateOrder(1, 1n, "cancelled"))).toBe("order_not_found");
  expect(await store.updateOrder(7, 2n, "cancelled")).toMatchObject({ id: 2n, status: "cancelled" });
  await close();
});

test("SQLite: where there is one key, all earlier orders belong to it", async () => {
  using folder = temporaryFolder();
  sqliteBefore(folder.path("a.db"), [addPets(9), ...[1, 2, 3].map(addOrder), addKey(1)]);
  const { store, close } = openSqlite(folder.path("a.db"));
  await expectOwners(store, { 1: [1n, 2n, 3n], 2: [] });
  await close();
});

test("SQLite: an older server continues after a newer command has migrated; its orders belong to no key", async () => {
  using folder = temporaryFolder();
  sqliteBefore(folder.path("a.db"), [addPets(2), addKey(1)]);
  using older = new Database(folder.path("a.db"));
  const insert = older.prepare("INSERT INTO orders (pet_id, status, created_at) VALUES (?, 'placed', 0)");
  insert.run(1);
  const { store, close } = openSqlite(folder.path("a.db"));
  insert.run(2);
  await expectOwners(store, { 1: [1n] });
  await close();
});

async function postgresBefore(
  statements: readonly string[],
  steps = stepsBefore(POSTGRES),
): Promise<TestDatabase> {
  const database = await createDatabase();
  await database.sql`CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now())`;
  for (const step of POSTGRES.slice(0, steps)) {
    await database.sql.unsafe("sql" in step ? step.sql : "");
    await database.sql`INSERT INTO schema_migrations (version, name) VALUES (${step.version}, ${step.name})`;
  }
  for (const statement of statements) await database.sql.unsafe(statement);
  return database;
}

test("PostgreSQL: earlier orders belong to the key of their idempotency record, and without one to no key", async () => {
  await using database = await postgresBefore([...ORDERS, addKey(1), addKey(2)]);
  const { store } = await database.open();
  await expectOwners(store, { 1: [], 2: [], 7: [2n], 8: [3n], 9: [] });
  expect(rejectionCode(await store.updateOrder(1, 1n, "cancelled"))).toBe("order_not_found");
  expect(await store.updateOrder(7, 2n, "cancelled")).toMatchObject({ id: 2n, status: "cancelled" });
}, 30_000);

test("PostgreSQL: where there is one key, all earlier orders belong to it", async () => {
  const orders =
    "INSERT INTO orders (pet_id, status, created_at) SELECT 1, 'cancelled', 0 FROM generate_series(1, 250)";
  await using database = await postgresBefore([addPets(1), orders, addKey(1)]);
  const { store } = await database.open();
  const [{ n }] = await database.sql`SELECT count(*) AS n FROM orders WHERE key_id = 1`;
  expect(n).toBe(250n);
  expect(idsOf(await store.listOrders(1, { limit: 9, after: 245n }))).toEqual([246n, 247n, 248n, 249n, 250n]);
}, 30_000);

test("PostgreSQL: older instances place, list and update orders during the migration and after it", async () => {
  await using database = await postgresBefore([addPets(400), addKey(1), addKey(2)]);
  const older = new SQL(database.url, { max: 2, bigint: true });
  let placed = 0;
  let isMigrated = false;
  const serving = (async () => {
    for (let after = 0; after < 20; placed++) {
      const [{ id }] = await older`
        INSERT INTO orders (pet_id, status, created_at) SELECT ${placed + 1}, 'placed', ${1} RETURNING id`;
      await older`UPDATE orders SET status = ${"completed"} WHERE id = ${id}`;
      const rows = await older`SELECT id, pet_id AS "petId", status, created_at AS "createdAt"
        FROM orders WHERE id > ${id - 1n} ORDER BY id LIMIT ${2}`;
      expect(rows.map((row: { status: string }) => row.status)).toEqual(["completed"]);
      if (isMigrated) after++;
    }
  })();
  const { store } = await database.open();
  isMigrated = true;
  await serving;
  await older.close({ timeout: 0 });
  expect(placed).toBeGreaterThanOrEqual(20);
  await expectOwners(store, { 1: [], 2: [] });
}, 30_000);

test("PostgreSQL: a migration that waits for the lock of a table lets other sessions use the table", async () => {
  await using database = await postgresBefore([addPets(1), addOrder(1), addKey(1)]);
  const older = new SQL(database.url, { max: 1 });
  // What an older instance allows for a lock.
  await older`SET lock_timeout = 250`;
  let opening: Promise<unknown> = Promise.resolve();
  // As pg_dump does for as long as it runs.
  await database.sql.begin("isolation level repeatable read read only", async (tx) => {
    await tx`SELECT count(*) FROM orders`;
    opening = database.open();
    for (let i = 0; i < 20; i++) {
      await older`UPDATE orders SET status = 'completed' WHERE id = 1`;
      await Bun.sleep(50);
    }
    const [{ version }] = await older`SELECT max(version) AS version FROM schema_migrations`;
    expect(version).toBe(stepsBefore(POSTGRES));
  });
  await opening;
  await older.close({ timeout: 0 });
}, 30_000);

test("PostgreSQL: a start that was interrupted while it built an index builds it again", async () => {
  await using database = await postgresBefore(
    [addPets(1), addOrder(1), addKey(1), "CREATE INDEX orders_by_key ON orders (key_id, id)"],
    stepsBefore(POSTGRES) + 1,
  );
  await database.sql`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'orders_by_key'::regclass`;
  const { store } = await database.open();
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
  await expectOwners(store, { 1: [1n] });
}, 30_000);

test("PostgreSQL: ten instances that start together on an earlier database migrate it once", async () => {
  await using database = await postgresBefore([...ORDERS, addKey(1), addKey(2)]);
  const instances = await Promise.all(Array.from({ length: 10 }, () => database.open()));
  const applied = await database.sql`SELECT version FROM schema_migrations ORDER BY version`;
  expect(applied.map(({ version }: { version: number }) => version)).toEqual(POSTGRES.map((_, i) => i + 1));
  for (const { store } of instances) await expectOwners(store, { 7: [2n], 8: [3n] });
}, 30_000);
