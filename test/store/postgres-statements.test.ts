import type { SQL } from "bun";
import { expect, test } from "bun:test";
import { connect } from "../../src/store/postgres/connect.ts";
import { pageQueries } from "../../src/store/postgres/page-query.ts";
import { ORDERS, PETS } from "../../src/store/postgres/postgres-store.ts";
import { AT, rex, written } from "../conformance/store-fixture.ts";
import { emptyPlace } from "./postgres-database.ts";

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

test("names that look like SQL or like part of an array are names, alone and side by side in a batch", async () => {
  await using at = await emptyPlace();
  const { store } = await at.open();
  const answers = await Promise.all(HOSTILE.map((name) => store.createPet({ ...rex, name }, AT)));
  for (const [i, name] of HOSTILE.entries()) {
    const id = written(await store.createPet({ ...rex, name }, AT)).id;
    expect((await store.getPet(id))?.name).toBe(name);
    expect((await store.getPet(written(answers[i] as never).id))?.name).toBe(name);
  }
});

test("Idempotency-Keys that look like SQL are keys", async () => {
  await using at = await emptyPlace();
  const { store } = await at.open();
  const attempts = HOSTILE.map((idempotencyKey) => ({ keyId: 1, idempotencyKey, fingerprint: "f" }));
  const firsts = await Promise.all(
    attempts.map((idempotentRequest) => store.createPet(rex, AT, idempotentRequest)),
  );
  const repeats = await Promise.all(
    attempts.map((idempotentRequest) => store.createPet(rex, AT, idempotentRequest)),
  );
  for (const [i, first] of firsts.entries()) {
    expect(repeats[i]).toEqual({ ...written(first), replayed: true });
  }
});

test("a write that the pools refuses fails alone: the others of its batch are done, once", async () => {
  await using at = await emptyPlace();
  const { store } = await at.open();
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

/** As the store connects. */
const LIMITS = { max: 1, connectMs: 5_000, statementMs: 5_000, lockMs: 5_000, idleInTransactionMs: 5_000 };

/** The plan that is made once and kept, whatever the values are. */
async function plan(sql: SQL, query: string, values: string): Promise<string> {
  return sql.begin(async (tx) => {
    await tx`SET LOCAL plan_cache_mode = force_generic_plan`;
    await tx.unsafe(`PREPARE page AS ${query}`);
    const rows = await tx.unsafe<{ "QUERY PLAN": string }[]>(`EXPLAIN (COSTS OFF) EXECUTE page (${values})`);
    await tx`DEALLOCATE page`;
    const steps = rows.map((row) => row["QUERY PLAN"].trim());
    return steps.join("; ").replaceAll("::text", "");
  });
}

async function expectIndexes(sql: SQL): Promise<void> {
  for (const table of [PETS, ORDERS]) {
    const { any, withStatus } = pageQueries(table);
    const name = table.table;
    expect(await plan(sql, any, "25000, 21")).toBe(
      `Limit; ->  Index Scan using ${name}_pkey on ${name}; Index Cond: (id > $1)`,
    );
    expect(await plan(sql, withStatus, "25000, 21, 'sold'")).toBe(
      `Limit; ->  Index Scan using ${name}_by_status on ${name}; ` +
        "Index Cond: ((ROW(status, id) > ROW($3, $1)) AND (status <= $3))",
    );
  }
}

/** As time makes them: the old ones sold, the new ones available, few in between. */
async function fill(sql: SQL): Promise<void> {
  await sql`INSERT INTO pets (name, category_id, status)
    SELECT 'pet ' || n, n, CASE WHEN n < 45000 THEN 'sold' WHEN n % 100 = 0 THEN 'pending' ELSE 'available' END
    FROM generate_series(1, 50000) AS n`;
  await sql`INSERT INTO orders (pet_id, status, created_at)
    SELECT id, CASE WHEN id < 45000 THEN 'completed' ELSE 'placed' END, 0 FROM pets`;
}

test("pages are found by the indexes, on a small table and a large one, with statistics and without", async () => {
  await using at = await emptyPlace();
  const sql = connect(at.url, LIMITS);
  await sql`VACUUM ANALYZE pets, orders`;
  await expectIndexes(sql);
  await fill(sql);
  await expectIndexes(sql);
  await sql`ANALYZE pets, orders`;
  await expectIndexes(sql);
  await sql.close();
});

test("a page reads a few blocks, at whatever depth", async () => {
  await using at = await emptyPlace();
  await fill(at.sql);
  const { any, withStatus } = pageQueries(PETS);
  for (const values of ["0, 21", "25000, 21", "49900, 21"]) {
    expect(await blocksRead(at.sql, `(bigint, bigint) AS ${any}`, values)).toBeLessThan(30);
  }
  for (const after of [0, 25_000, 49_000]) {
    for (const status of ["'available'", "'pending'", "'sold'"]) {
      const values = `${after}, 21, ${status}`;
      expect(await blocksRead(at.sql, `(bigint, bigint, text) AS ${withStatus}`, values)).toBeLessThan(30);
    }
  }
});

async function blocksRead(sql: SQL, query: string, values: string): Promise<number> {
  return sql.begin(async (tx) => {
    await tx.unsafe(`PREPARE page ${query}`);
    const [row] = await tx.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page (${values})`);
    await tx`DEALLOCATE page`;
    const [{ Plan: plan }] = row["QUERY PLAN"];
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
  });
}
