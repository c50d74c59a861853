import type { SQL } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { fillStatements, POSTGRES_NUMBERS } from "../../../bench/skewed-rows.ts";
import { petFiltersIn } from "../../../src/store/pages.ts";
import { connect } from "../../../src/store/postgres/connection.ts";
import { selectPetPages } from "../../../src/store/postgres/pet-json.ts";
import { POSTGRES_DIALECT, withNumberedParameters } from "../../../src/store/postgres/statements.ts";
import type { Statement } from "../../../src/store/statements.ts";
import {
  FEW_ROWS,
  MANY_ROWS,
  measuredPages,
  type MeasuredPage,
  PET_QUERIES,
} from "../../conformance/list-cost.ts";
import { createMigrated } from "./postgres-database.ts";

const OPTIONS = {
  maxConnections: 1,
  connectMs: 60_000,
  statementMs: 60_000,
  lockMs: 60_000,
  idleInTransactionMs: 60_000,
};

const opened = new AsyncDisposableStack();
let few: SQL;
let many: SQL;
beforeAll(async () => {
  [few, many] = await Promise.all([filled(FEW_ROWS), filled(MANY_ROWS)]);
}, 60_000);
afterAll(() => opened.disposeAsync());

/** A database with so many rows in each table. The connection asks for generic plans, as the store's do. */
async function filled(rows: number): Promise<SQL> {
  const database = opened.use(await createMigrated());
  const sql = connect(database.url, OPTIONS);
  opened.defer(() => sql.close());
  await sql`ALTER TABLE orders DROP CONSTRAINT orders_pet_id_fkey`;
  const counts = { pets: rows, orders: rows, audit: rows };
  for (const statement of fillStatements(counts, POSTGRES_NUMBERS)) await sql.unsafe(statement);
  await sql`VACUUM ANALYZE pets, orders, audit`;
  return sql;
}

/** The blocks that a statement reads with the plan for all values, which is what a server uses. */
function blocksOf(sql: SQL, { sql: text, values }: Statement): Promise<number> {
  const given = values.map((value) => (typeof value === "string" ? `'${value}'` : value)).join();
  return sql.begin(async (tx) => {
    await tx.unsafe(`PREPARE query AS ${withNumberedParameters(text)}`);
    const execution = values.length === 0 ? "query" : `query (${given})`;
    const [row] = await tx.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE ${execution}`);
    await tx`DEALLOCATE query`;
    const { "Shared Hit Blocks": hit = NaN, "Shared Read Blocks": read = NaN } = row["QUERY PLAN"][0].Plan;
    return hit + read;
  });
}

test("a page of 5 pets reads fewer than 40 blocks, alone and together, with every combination of filters", async () => {
  const pages = measuredPages(POSTGRES_DIALECT).pets;
  for (const { name, page } of pages) {
    const blocks = await blocksOf(many, page);
    expect({ name, blocks, isFew: blocks < 40 }).toMatchObject({ isFew: true });
  }
  for (const query of PET_QUERIES) {
    const given = petFiltersIn(query);
    const values = [...given.map(({ value }) => value), query.after ?? 0, query.limit];
    const pages = { sql: selectPetPages(given), values: values.map((value) => `{${value}}`) };
    const blocks = await blocksOf(many, pages);
    expect({ query, blocks, isFew: blocks < 40 }).toMatchObject({ isFew: true });
  }
});

async function readBy(sql: SQL, { page, lastRead }: MeasuredPage): Promise<number> {
  return (await blocksOf(sql, page)) + (lastRead === undefined ? 0 : await blocksOf(sql, lastRead));
}

test.each(Object.entries(measuredPages(POSTGRES_DIALECT)))(
  "with four times as many rows, no page of %s reads twice as much, whatever the filters",
  async (_, pages) => {
    const grown: unknown[] = [];
    for (const page of pages) {
      const [before, after] = [await readBy(few, page), await readBy(many, page)];
      if (after > 1.5 * before + 16) grown.push({ name: page.name, before, after });
    }
    expect(grown).toEqual([]);
  },
  60_000,
);
