import type { SQL } from "bun";
import { expect, test } from "bun:test";
import { columnOf } from "../../../src/domain/fields.ts";
import type { OrderFilters, PetFilters } from "../../../src/domain/pets-and-orders.ts";
import { keyPage } from "../../../src/store/key-list.ts";
import { connect } from "../../../src/store/postgres/connection.ts";
import { PETS_AS_JSON, selectPetPages } from "../../../src/store/postgres/pet-json.ts";
import { withNumberedParameters, POSTGRES_DIALECT } from "../../../src/store/postgres/dialect.ts";
import { orderPage, orderPageOfKey, petFiltersIn, petPage } from "../../../src/store/pet-and-order-lists.ts";
import { ORDER_ROWS } from "../../../src/store/sql/rows.ts";
import type { Statement } from "../../../src/store/sql/steps.ts";
import { usageQueries } from "../../../src/store/usage-history.ts";
import {
  AT,
  DAY_MS,
  filterSets,
  ORDER_FILTER_VALUES,
  PET_FILTER_VALUES,
  rex,
} from "../../conformance/store-fixture.ts";
import { createMigrated, PATIENT } from "./postgres-database.ts";

test("at most 128 pets are created in one transaction", async () => {
  await using database = await createMigrated();
  const { clientStore } = await database.open();
  await Promise.all(
    Array.from({ length: 300 }, (_, i) =>
      clientStore.createPet(rex, AT, { keyId: 1, idempotencyKey: `${i}`, fingerprint: "f" }),
    ),
  );
  const transactions = await database.sql<{ pets: bigint }[]>`
    SELECT count(*) AS pets FROM pets GROUP BY xmin::text ORDER BY min(id)`;
  expect(transactions.map(({ pets }) => pets)).toEqual([128n, 128n, 44n]);
});

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

const planOf = (sql: SQL, { sql: text, values }: Statement) =>
  plan(
    sql,
    withNumberedParameters(text),
    values.map((value) => (typeof value === "string" ? `'${value}'` : value)).join(),
  );

const PAGE = { after: 10_000n, limit: 20 };
const BACKWARDS = { before: 10_000n, limit: 20 };
/** A page, and what its index begins with: columns, the last of them in parentheses if it has the order of bytes. */
type IndexedPage = readonly [page: Statement, columns: readonly string[]];

/** The columns of an index. Where there are several filters, those of text have the order of bytes. */
function indexedColumns(filters: PetFilters): readonly string[] {
  const columns = petFiltersIn(filters);
  return columns.map(({ column, type }) => (type === "text" && columns.length > 1 ? `(${column})` : column));
}

function petPages(filters: PetFilters): IndexedPage {
  return [petPage({ ...PAGE, ...filters }, POSTGRES_DIALECT), indexedColumns(filters)];
}

function orderPages(filters: OrderFilters): IndexedPage[] {
  const [column] = Object.keys(filters).map(columnOf);
  const first = column === undefined ? [] : [column];
  const types: Readonly<Record<string, string>> = ORDER_ROWS.columns;
  const ofKey = first.map((name) => (types[name] === "text" ? `(${name})` : name));
  const query = { ...BACKWARDS, ...filters };
  return [
    [orderPageOfKey(2, { ...PAGE, ...filters }, POSTGRES_DIALECT), ["key_id", ...ofKey]],
    [orderPage(query, POSTGRES_DIALECT).page, first],
    [orderPage({ ...query, keyId: 2 }, POSTGRES_DIALECT).page, ["key_id", ...ofKey]],
    [orderPage({ ...BACKWARDS, petId: 7n }, POSTGRES_DIALECT).page, ["pet_id"]],
  ];
}

/** The start of the plan of a page that is read from the index on these columns and `id`. */
function planFrom([{ sql, values }, columns]: IndexedPage): string {
  const isDescending = sql.includes(" DESC ");
  const [follows, ends] = isDescending ? ["<", ">="] : [">", "<="];
  const id = `$${values.length - 1}`;
  const last = columns.at(-1);
  const value = `$${columns.length}`;
  const equal = columns.slice(0, -1).map((column, i) => `(${column} = $${i + 1}) AND `);
  const condition =
    last === undefined
      ? `(id ${follows} ${id})`
      : `(${equal.join("")}(ROW(${last}, id) ${follows} ROW(${value}, ${id})) AND (${last} ${ends} ${value}))`;
  return `Limit; ->  Index Scan ${isDescending ? "Backward " : ""}using INDEX; Index Cond: ${condition}`;
}

const PAGES: readonly IndexedPage[] = [
  ...filterSets(PET_FILTER_VALUES).map(([, filters]) => petPages(filters)),
  ...filterSets(ORDER_FILTER_VALUES).flatMap(([, filters]) => orderPages(filters)),
];

async function expectIndexes(sql: SQL): Promise<void> {
  for (const page of PAGES) {
    const steps = await planOf(sql, page[0]);
    expect(steps.replace(/using \w+ on \w+/, "using INDEX")).toStartWith(planFrom(page));
  }
  for (const [, filters] of filterSets(PET_FILTER_VALUES)) {
    const byIds = await planOf(sql, petPage({ ids: [7n, 9n], ...filters, limit: 20 }, POSTGRES_DIALECT));
    expect(byIds).toContain("Index Scan using pets_pkey on pets; Index Cond: (id = ANY (");
    const given = petFiltersIn(filters);
    const values = [...given.map(({ value }) => value), 10_000, 20].map((value) => `'{${value},${value}}'`);
    const steps = await plan(sql, selectPetPages(given), values.join());
    const columns = indexedColumns(filters).map(
      (column, i) => [column, `given.${given[i]?.column}`] as const,
    );
    const equal = columns.slice(0, -1).map(([column, value]) => `(${column} = ${value}) AND `);
    const [last, value] = columns.at(-1) ?? [];
    const condition =
      last === undefined
        ? "(id > given.after)"
        : `(${equal.join("")}(ROW(${last}, id) > ROW(${value}, given.after)) AND (${last} <= ${value}))`;
    expect(steps.replace(/using \w+ on/, "using INDEX on")).toContain(
      `Limit; ->  WindowAgg; ->  Index Scan using INDEX on pets; Index Cond: ${condition}`,
    );
    expect(steps).not.toContain("Seq Scan");
  }
  expect(await plan(sql, PETS_AS_JSON, "'{7,9}'")).toContain("Index Cond: (id = ANY ($1))");
}

/** The old pets are sold and the new ones available, few are pending. Key 2 has twenty of the orders. */
async function fill(sql: SQL): Promise<void> {
  await sql`INSERT INTO pets (name, category_id, status)
    SELECT 'pet ' || n, n, CASE WHEN n < 18000 THEN 'sold' WHEN n % 100 = 0 THEN 'pending' ELSE 'available' END
    FROM generate_series(1, 20000) AS n`;
  await sql`INSERT INTO orders (key_id, pet_id, status, created_at)
    SELECT CASE WHEN id % 1000 = 0 THEN 2 ELSE 1 END, id,
      CASE WHEN id < 18000 THEN 'completed' ELSE 'placed' END, 0 FROM pets ORDER BY id`;
}

test("pages are read from the indexes, in a small table and a large one, with statistics and without", async () => {
  await using database = await createMigrated();
  const sql = connect(database.url, PATIENT);
  await sql`VACUUM ANALYZE pets, orders`;
  await expectIndexes(sql);
  await fill(sql);
  await expectIndexes(sql);
  await sql`ANALYZE pets, orders`;
  await expectIndexes(sql);
  // Where one key has placed all orders so far, the index on (status, id) looks as good. It is not for the next key.
  await sql`UPDATE orders SET key_id = 1`;
  await sql`ANALYZE orders`;
  await expectIndexes(sql);
  await sql.close();
});

test("usage is read, summed and deleted with the blocks that it takes, before a vacuum of the large table and after", async () => {
  await using database = await createMigrated();
  const sql = connect(database.url, PATIENT);
  // PostgreSQL vacuums by itself after so many rows, which would be in the middle of the test or not.
  await sql`ALTER TABLE usage_days SET (autovacuum_enabled = false)`;
  // 500 keys and 400 days: about 3,000 blocks.
  await sql`INSERT INTO usage_days SELECT day::bigint * ${DAY_MS}, key, 10, 1, 0, 1, '{"listPets":[9,1]}'
    FROM generate_series(1, 400) AS day CROSS JOIN generate_series(1, 500) AS key`;
  const blocks = (query: string, types: string, values: string) =>
    sql.begin(async (tx) => {
      await tx`SET LOCAL plan_cache_mode = force_generic_plan`;
      await tx.unsafe(`PREPARE query (${types}) AS ${withNumberedParameters(query)}`);
      const read = await blocksOf(tx, { sql: `EXECUTE query (${values})`, values: [] });
      await tx`DEALLOCATE query`;
      return read;
    });
  const { read, sums, deleteBefore } = usageQueries("day", POSTGRES_DIALECT);
  const month = JSON.stringify(Array.from({ length: 30 }, (_, i) => (371 + i) * DAY_MS));
  const expectFewBlocks = async (ofDeletedRow: number) => {
    expect(await blocks(read, "bigint, text", `77, '${month}'`)).toBeLessThan(30 * 5 + 10);
    const summed = await blocks(sums, "text, bigint, bigint, bigint", `'${month}', 101, 200, 20`);
    expect(summed).toBeLessThan(30 * 10);
    const deleted = await blocks(deleteBefore, "bigint, bigint", `${200 * DAY_MS}, 100`);
    expect(deleted).toBeLessThan(100 * ofDeletedRow);
  };
  // A row is found, locked, found again by its place, and marked.
  await expectFewBlocks(5);
  await sql`VACUUM ANALYZE usage_days`;
  // The map of the blocks that a vacuum has seen is marked, too.
  await expectFewBlocks(6);
  await sql.close();
});

test("a page of keys reads each key once, and nothing of the usage history", async () => {
  await using database = await createMigrated();
  const { sql } = database;
  await sql`INSERT INTO api_keys (name, plan, created_at, revision)
    SELECT 'key ' || n, 'free', n, n FROM generate_series(1, 500) AS n`;
  await sql`INSERT INTO key_secrets (hash, key_id, hint) SELECT lpad(n::text, 64, '0'), n, 'pet_live_' || n
    FROM generate_series(1, 500) AS n`;
  // The rows take about 3,000 blocks.
  await sql`INSERT INTO usage_days SELECT day::bigint * ${DAY_MS}, key, 10, 1, 0, 1, '{"listPets":[9,1]}'
    FROM generate_series(1, 400) AS day CROSS JOIN generate_series(1, 500) AS key`;
  await sql`ANALYZE api_keys, usage_days`;
  for (const query of [
    { sort: "id" },
    { sort: "name", after: 7 },
    { sort: "usedToday", usedToday: Array.from({ length: 500 }, (_, i) => [i, i] as const) },
    { sort: "lastUsedAt", filter: { search: "live", state: "active", unusedSince: 5 } },
  ] as const) {
    const page = { ...query, limit: 50, now: 400 * DAY_MS };
    const last = query.sort === "name" ? { revokedAt: null, value: "key 7" } : undefined;
    // The planner may choose to find the last use of each key in its index, which is two blocks.
    const lookups = query.sort === "lastUsedAt" ? 500 * 2 : 0;
    expect(await blocksOf(sql, keyPage(page, POSTGRES_DIALECT, last))).toBeLessThan(400 + lookups);
  }
});

async function blocksOf(sql: SQL, { sql: text, values }: Statement): Promise<number> {
  const [row] = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${withNumberedParameters(text)}`, [
    ...values,
  ]);
  const { "Shared Hit Blocks": hit = NaN, "Shared Read Blocks": read = NaN } = row["QUERY PLAN"][0].Plan;
  return hit + read;
}
