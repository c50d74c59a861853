import type { SQL } from "bun";
import { expect, test } from "bun:test";
import { SELECT_CREDENTIALS } from "../../../src/store/postgres/api-keys.ts";
import { connect } from "../../../src/store/postgres/connections/connection.ts";
import { ALL_ORDER_PAGES } from "../../../src/store/postgres/operator-store.ts";
import { ORDER_PAGES } from "../../../src/store/postgres/orders.ts";
import { PET_PAGES, PETS_BY_IDS } from "../../../src/store/postgres/pets.ts";
import { AT, rex, resultOf } from "../../conformance/store-fixture.ts";
import { emptyDatabase } from "./postgres-database.ts";

const HOSTILE = [
  "'; DROP TABLE pets; --",
  "$1",
  "${1}",
  "{NULL}",
  "NULL",
  'a","b',
  "\\\\",
  "\\",
  '\\"',
  "E'\\x00'",
  "%s %d %n",
  "{",
  "}",
  ",",
  '"',
  "'",
  "--",
  "/*",
  " ",
];

test("names that look like SQL or like part of an array are stored exactly, alone and in a batch", async () => {
  await using database = await emptyDatabase();
  const { store } = await database.open();
  const results = await Promise.all(HOSTILE.map((name) => store.createPet({ ...rex, name }, AT)));
  for (const [i, name] of HOSTILE.entries()) {
    const id = resultOf(await store.createPet({ ...rex, name }, AT)).id;
    expect((await store.getPet(id))?.name).toBe(name);
    expect((await store.getPet(resultOf(results[i] as never).id))?.name).toBe(name);
  }
});

test("Idempotency-Keys that look like SQL are keys", async () => {
  await using database = await emptyDatabase();
  const { store } = await database.open();
  const requests = HOSTILE.map((idempotencyKey) => ({ keyId: 1, idempotencyKey, fingerprint: "f" }));
  const firsts = await Promise.all(requests.map((request) => store.createPet(rex, AT, request)));
  const repeats = await Promise.all(requests.map((request) => store.createPet(rex, AT, request)));
  for (const [i, first] of firsts.entries()) {
    expect(repeats[i]).toEqual({ ...resultOf(first), replayed: true });
  }
});

test("a write that PostgreSQL rejects fails alone: the others of its batch are committed, once", async () => {
  await using database = await emptyDatabase();
  const { store } = await database.open();
  const names = Array.from({ length: 50 }, (_, i) => (i === 17 || i === 40 ? `N\0L ${i}` : `name ${i}`));
  const outcomes = await Promise.allSettled(
    names.map((name, i) =>
      store.createPet({ ...rex, name }, AT, { keyId: 1, idempotencyKey: `${i}`, fingerprint: "f" }),
    ),
  );
  const failed = outcomes.flatMap(({ status }, i) => (status === "rejected" ? [i] : []));
  expect(failed).toEqual([17, 40]);
  expect(outcomes[17]).not.toMatchObject({ reason: { name: "Unavailable" } });
  const { items } = await store.listPets({ limit: 100 });
  expect(items.map(({ name }) => name)).toEqual(names.filter((name) => !name.includes("\0")));
});

test("at most 128 pets are created in one transaction", async () => {
  await using database = await emptyDatabase();
  const { store } = await database.open();
  await Promise.all(
    Array.from({ length: 300 }, (_, i) =>
      store.createPet(rex, AT, { keyId: 1, idempotencyKey: `${i}`, fingerprint: "f" }),
    ),
  );
  const transactions = await database.sql<{ pets: bigint }[]>`
    SELECT count(*) AS pets FROM pets GROUP BY xmin::text ORDER BY min(id)`;
  expect(transactions.map(({ pets }) => pets)).toEqual([128n, 128n, 44n]);
});

/** The options of the store, but for the timeouts. */
const OPTIONS = {
  maxConnections: 1,
  connectMs: 5_000,
  statementMs: 5_000,
  lockMs: 5_000,
  idleInTransactionMs: 5_000,
};

/** The connection asks for the generic plan, which PostgreSQL caches and uses for all values. */
async function plan(sql: SQL, query: string, values: string): Promise<string> {
  return sql.begin(async (tx) => {
    await tx.unsafe(`PREPARE page AS ${query}`);
    const rows = await tx.unsafe<{ "QUERY PLAN": string }[]>(`EXPLAIN (COSTS OFF) EXECUTE page (${values})`);
    await tx`DEALLOCATE page`;
    const steps = rows.map((row) => row["QUERY PLAN"].trim());
    return steps.join("; ").replaceAll("::text", "");
  });
}

async function expectIndexes(sql: SQL): Promise<void> {
  expect(await plan(sql, PET_PAGES.all, "25000, 21")).toBe(
    "Limit; ->  Index Scan using pets_pkey on pets; Index Cond: (id > $1)",
  );
  expect(await plan(sql, PET_PAGES.byStatus, "25000, 21, 'sold'")).toBe(
    "Limit; ->  Index Scan using pets_by_status on pets; " +
      "Index Cond: ((ROW(status, id) > ROW($3, $1)) AND (status <= $3))",
  );
  expect(await plan(sql, PETS_BY_IDS, "'{7,9}', 21, 'sold'")).toContain("Index Cond: (id = ANY ($1))");
  expect(await plan(sql, ORDER_PAGES.all, "25000, 21, 2")).toBe(
    "Limit; ->  Index Scan using orders_by_key on orders; " +
      "Index Cond: ((ROW(key_id, id) > ROW($3, $1)) AND (key_id <= $3))",
  );
  expect(await plan(sql, ORDER_PAGES.byStatus, "25000, 21, 2, 'completed'")).toBe(
    "Limit; ->  Index Scan using orders_by_key_and_status on orders; " +
      "Index Cond: ((key_id = $3) AND (ROW((status), id) > ROW($4, $1)) AND ((status) <= $4))",
  );
}

test("look-ups of keys use the indexes of hashes and of keys", async () => {
  await using database = await emptyDatabase();
  const sql = connect(database.url, OPTIONS);
  const steps = await plan(sql, SELECT_CREDENTIALS, `'${"0".repeat(64)},${"1".repeat(64)}'`);
  expect(steps).toContain("Index Cond: (hash = ANY (string_to_array($1, ',')))");
  expect(steps).toContain("Index Cond: (id = key_secrets.key_id)");
  expect(steps).not.toContain("Seq Scan");
  await sql.close();
});

async function expectIndexesForOperators(sql: SQL): Promise<void> {
  const { all, byStatus, byKey, byKeyAndStatus, byPet } = ALL_ORDER_PAGES;
  expect(await plan(sql, all, "25000, 21")).toBe(
    "Limit; ->  Index Scan Backward using orders_pkey on orders; Index Cond: (id < $1)",
  );
  expect(await plan(sql, byStatus, "25000, 21, 'completed'")).toBe(
    "Limit; ->  Index Scan Backward using orders_by_status on orders; " +
      "Index Cond: ((ROW(status, id) < ROW($3, $1)) AND (status >= $3))",
  );
  expect(await plan(sql, byKey, "25000, 21, 2")).toBe(
    "Limit; ->  Index Scan Backward using orders_by_key on orders; " +
      "Index Cond: ((ROW(key_id, id) < ROW($3, $1)) AND (key_id >= $3))",
  );
  expect(await plan(sql, byKeyAndStatus, "25000, 21, 2, 'completed'")).toBe(
    "Limit; ->  Index Scan Backward using orders_by_key_and_status on orders; " +
      "Index Cond: ((key_id = $3) AND (ROW((status), id) < ROW($4, $1)) AND ((status) >= $4))",
  );
  expect(await plan(sql, byPet, "25000, 21, 7, NULL, NULL")).toStartWith(
    "Limit; ->  Index Scan Backward using orders_by_pet on orders; " +
      "Index Cond: ((ROW(pet_id, id) < ROW($3, $1)) AND (pet_id >= $3)); Filter: ",
  );
}

/** The old pets are sold and the new ones available, few are pending. Key 2 has twenty of the orders. */
async function fill(sql: SQL): Promise<void> {
  await sql`INSERT INTO pets (name, category_id, status)
    SELECT 'pet ' || n, n, CASE WHEN n < 45000 THEN 'sold' WHEN n % 100 = 0 THEN 'pending' ELSE 'available' END
    FROM generate_series(1, 50000) AS n`;
  await sql`INSERT INTO orders (key_id, pet_id, status, created_at)
    SELECT CASE WHEN id % 2500 = 0 THEN 2 ELSE 1 END, id,
      CASE WHEN id < 45000 THEN 'completed' ELSE 'placed' END, 0 FROM pets ORDER BY id`;
}

/** As after an import: the last statistics are those of empty tables. */
async function fillWithoutStatistics(sql: SQL): Promise<void> {
  await sql`ALTER TABLE pets SET (autovacuum_enabled = off)`;
  await sql`ALTER TABLE orders SET (autovacuum_enabled = off)`;
  await sql`VACUUM ANALYZE pets, orders`;
  await fill(sql);
}

test("pages are read from the indexes, in a small table and a large one, with statistics and without", async () => {
  await using database = await emptyDatabase();
  const sql = connect(database.url, OPTIONS);
  await sql`VACUUM ANALYZE pets, orders`;
  await expectIndexes(sql);
  await expectIndexesForOperators(sql);
  await fill(sql);
  await expectIndexes(sql);
  await expectIndexesForOperators(sql);
  await sql`ANALYZE pets, orders`;
  await expectIndexes(sql);
  await expectIndexesForOperators(sql);
  // Where one key has placed all orders so far, the index on (status, id) looks as good. It is not for the next key.
  await sql`UPDATE orders SET key_id = 1`;
  await sql`ANALYZE orders`;
  await expectIndexes(sql);
  await expectIndexesForOperators(sql);
  await sql.close();
}, 30_000);

test("every page reads fewer than 30 blocks, the last as well as the first", async () => {
  await using database = await emptyDatabase();
  await fillWithoutStatistics(database.sql);
  const sql = connect(database.url, OPTIONS);
  await expectFewBlocksForPets(sql);
  await expectFewBlocksForOrders(sql);
  await sql.close();
}, 30_000);

async function expectFewBlocksForPets(sql: SQL): Promise<void> {
  const { all, byStatus } = PET_PAGES;
  for (const values of ["0, 21", "25000, 21", "49900, 21"]) {
    expect(await blocksRead(sql, `(bigint, bigint) AS ${all}`, values)).toBeLessThan(30);
  }
  for (const after of [0, 25_000, 49_000]) {
    for (const status of ["'available'", "'pending'", "'sold'"]) {
      const values = `${after}, 21, ${status}`;
      expect(await blocksRead(sql, `(bigint, bigint, text) AS ${byStatus}`, values)).toBeLessThan(30);
    }
  }
}

async function expectFewBlocksForOrders(sql: SQL): Promise<void> {
  const { all, byStatus } = ORDER_PAGES;
  for (const keyId of [1, 2, 3]) {
    for (const after of [0, 25_000, 49_000]) {
      const values = `${after}, 21, ${keyId}`;
      expect(await blocksRead(sql, `(bigint, bigint, bigint) AS ${all}`, values)).toBeLessThan(30);
      for (const status of ["'placed'", "'completed'", "'cancelled'"]) {
        const query = `(bigint, bigint, bigint, text) AS ${byStatus}`;
        expect(await blocksRead(sql, query, `${values}, ${status}`)).toBeLessThan(30);
      }
    }
  }
}

test("listOrders of operators: every page reads fewer than 30 blocks", async () => {
  await using database = await emptyDatabase();
  await fillWithoutStatistics(database.sql);
  const sql = connect(database.url, OPTIONS);
  const { all, byStatus, byKey, byKeyAndStatus, byPet } = ALL_ORDER_PAGES;
  for (const before of [1, 25_000, 49_000, 60_000]) {
    const blocks = [
      await blocksRead(sql, `(bigint, bigint) AS ${all}`, `${before}, 21`),
      await blocksRead(sql, `(bigint, bigint, text) AS ${byStatus}`, `${before}, 21, 'placed'`),
      await blocksRead(sql, `(bigint, bigint, bigint) AS ${byKey}`, `${before}, 21, 2`),
      await blocksRead(
        sql,
        `(bigint, bigint, bigint, text) AS ${byKeyAndStatus}`,
        `${before}, 21, 2, 'completed'`,
      ),
      await blocksRead(
        sql,
        `(bigint, bigint, bigint, bigint, text) AS ${byPet}`,
        `${before}, 21, 700, NULL, 'completed'`,
      ),
    ];
    expect(blocks.filter((count) => count >= 30)).toEqual([]);
  }
  await sql.close();
}, 30_000);

async function blocksRead(sql: SQL, query: string, values: string): Promise<number> {
  return sql.begin(async (tx) => {
    await tx.unsafe(`PREPARE page ${query}`);
    const [row] = await tx.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page (${values})`);
    await tx`DEALLOCATE page`;
    const [{ Plan: plan }] = row["QUERY PLAN"];
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
  });
}
