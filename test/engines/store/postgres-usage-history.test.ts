import { expect, test } from "bun:test";
import { connect } from "../../../src/store/postgres/connections/connection.ts";
import { USAGE_QUERIES } from "../../../src/store/postgres/usage-history.ts";
import { emptyDatabase } from "./postgres-database.ts";

const DAY_MS = 86_400_000;
const OPTIONS = {
  maxConnections: 1,
  connectMs: 5_000,
  statementMs: 20_000,
  lockMs: 5_000,
  idleInTransactionMs: 5_000,
};

test("reading, summing and deleting read the rows that they need, in a large table without statistics", async () => {
  await using database = await emptyDatabase();
  const sql = connect(database.url, OPTIONS);
  // 500 keys and 400 days: about 3,000 blocks.
  await sql`INSERT INTO usage_days SELECT day::bigint * ${DAY_MS}, key, 10, 1, 0, 1, '{"listPets":[9,1]}'
    FROM generate_series(1, 400) AS day CROSS JOIN generate_series(1, 500) AS key`;
  await sql`INSERT INTO usage_sums SELECT ${5 * DAY_MS}, day::bigint * ${DAY_MS}, key, 50, 5, 0, 5
    FROM generate_series(0, 400, 5) AS day CROSS JOIN generate_series(1, 500) AS key`;
  const blocks = (query: string, types: string, values: string) =>
    sql.begin(async (tx) => {
      await tx`SET LOCAL plan_cache_mode = force_generic_plan`;
      await tx.unsafe(`PREPARE query (${types}) AS ${query}`);
      const [row] = await tx.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE query (${values})`);
      await tx`DEALLOCATE query`;
      const [{ Plan: plan }] = row["QUERY PLAN"];
      return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    });
  const { read, sum, deleteBefore } = USAGE_QUERIES.day;
  const month = `${371 * DAY_MS}, ${400 * DAY_MS}`;
  expect(await blocks(read, "bigint, bigint, bigint", `77, ${month}`)).toBeLessThan(30 * 5 + 10);
  const days = (...numbers: number[]) => `'{${numbers.map((day) => day * DAY_MS).join()}}'`;
  const parts = `${days(371, 372, 373, 374, 400)}, ${days(375, 380, 385, 390, 395)}`;
  expect(await blocks(sum, "bigint[], bigint[], bigint", `${parts}, 20`)).toBeLessThan(200);
  // A row is found, locked, found again by its place, and marked.
  expect(await blocks(deleteBefore, "bigint, bigint", `${200 * DAY_MS}, 100`)).toBeLessThan(500);
  await sql.close();
}, 30_000);
