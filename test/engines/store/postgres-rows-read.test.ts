import type { SQL } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { fillAllStatements, POSTGRES_NUMBERS } from "../../../bench/skewed-rows.ts";
import { auditPage } from "../../../src/store/audit.ts";
import { petFiltersIn, petPage } from "../../../src/store/pet-and-order-lists.ts";
import { connect } from "../../../src/store/postgres/connection.ts";
import { selectPetPages } from "../../../src/store/postgres/pet-json.ts";
import { POSTGRES_DIALECT, withNumberedParameters } from "../../../src/store/postgres/dialect.ts";
import type { Statement } from "../../../src/store/sql/steps.ts";
import {
  FEW_ROWS,
  MANY_ROWS,
  measuredLists,
  type MeasuredPage,
  mostWithMany,
  NOW,
  petQueries,
  rowCounts,
} from "../../conformance/list-cost.ts";
import { createMigrated, PATIENT } from "./postgres-database.ts";

const opened = new AsyncDisposableStack();
let few: SQL;
let many: SQL;
beforeAll(async () => {
  [few, many] = await Promise.all([filled(FEW_ROWS), filled(MANY_ROWS)]);
}, 120_000);
afterAll(() => opened.disposeAsync());

/** A database with so many rows in each table. The connection asks for generic plans, as the store's do. */
async function filled(rows: number): Promise<SQL> {
  const database = opened.use(await createMigrated());
  const sql = connect(database.url, PATIENT);
  opened.defer(() => sql.close());
  await sql`ALTER TABLE orders DROP CONSTRAINT orders_pet_id_fkey`;
  for (const statement of fillAllStatements(rowCounts(rows), POSTGRES_NUMBERS, NOW))
    await sql.unsafe(statement);
  await sql`VACUUM ANALYZE`;
  return sql;
}

/** A part of a plan, as EXPLAIN shows it after its execution. */
interface PlanNode {
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

/** The rows that were read from tables. Times loops, PostgreSQL has rounded averages. */
function rowsIn(node: PlanNode): number {
  const ofParts = (node.Plans ?? []).reduce((sum, part) => sum + rowsIn(part), 0);
  if (node["Relation Name"] === undefined) return ofParts;
  const { "Rows Removed by Filter": removed = 0, "Rows Removed by Index Recheck": rechecked = 0 } = node;
  return ofParts + (node["Actual Rows"] + removed + rechecked) * node["Actual Loops"];
}

/** What a statement reads with the plan for all values, which is what a server uses, unless its text is varied. */
function readBy(
  sql: SQL,
  { sql: text, values }: Statement,
): Promise<{ readonly blocks: number; readonly rows: number }> {
  const given = values.map((value) => (typeof value === "string" ? `'${value}'` : value)).join();
  return sql.begin(async (tx) => {
    await tx.unsafe(`PREPARE query AS ${withNumberedParameters(text)}`);
    const execution = values.length === 0 ? "query" : `query (${given})`;
    const [row] = await tx.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE ${execution}`);
    await tx`DEALLOCATE query`;
    const plan: PlanNode = row["QUERY PLAN"][0].Plan;
    return { blocks: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], rows: rowsIn(plan) };
  });
}

test("a page of 5 pets reads fewer than 40 blocks, alone and together, with every combination of filters", async () => {
  for (const query of petQueries(5)) {
    const given = petFiltersIn(query);
    const values = [...given.map(({ value }) => value), query.after ?? 0, query.limit];
    const together = { sql: selectPetPages(given), values: values.map((value) => `{${value}}`) };
    for (const statement of [petPage(query, POSTGRES_DIALECT), together]) {
      const { blocks } = await readBy(many, statement);
      expect({ query, blocks, isFew: blocks < 40 }).toMatchObject({ isFew: true });
    }
  }
});

async function pageReads(sql: SQL, { statements }: MeasuredPage) {
  const reads: Awaited<ReturnType<typeof readBy>>[] = [];
  for (const statement of statements) reads.push(await readBy(sql, statement));
  const blocks = reads.reduce((sum, each) => sum + each.blocks, 0);
  // The last row that a page may read is the last of those that the page has read.
  return { blocks, rows: Math.max(...reads.map(({ rows }) => rows)) };
}

const lists = (size: "small" | "full") =>
  measuredLists(POSTGRES_DIALECT, size).map((list) => [list.name, list] as const);

test.each(lists("full"))(
  "%s reads at most the rows that the table of operations allows",
  async (_, list) => {
    for (const page of list.pages) {
      const { rows } = await pageReads(many, page);
      expect({ page: page.name, rows, isAllowed: rows <= list.maxRowsRead }).toMatchObject({
        isAllowed: true,
      });
    }
  },
  120_000,
);

test.each(lists("small"))(
  "%s reads no more with four times as many rows, whatever the filters",
  async (_, list) => {
    const reads: { readonly name: string; readonly before: number; readonly after: number }[] = [];
    for (const page of list.pages) {
      const [before, after] = [await pageReads(few, page), await pageReads(many, page)];
      reads.push({ name: page.name, before: before.blocks, after: after.blocks });
    }
    const worst = Math.max(...reads.map(({ before }) => before));
    expect(reads.filter(({ before, after }) => after > mostWithMany(list, before, worst))).toEqual([]);
  },
  120_000,
);

test("entries of an actor, an action, an operator and a target that no statistics know are found without reading the others", async () => {
  await using database = await createMigrated();
  const sql = connect(database.url, PATIENT);
  await sql.unsafe(`INSERT INTO audit (at, actor, actor_name, operator, action, target_kind, target_id)
    SELECT n, 'operator', 'ann', 'ann', 'key.created', 'key', '1' FROM generate_series(1, ${FEW_ROWS}) AS n`);
  await sql`VACUUM ANALYZE audit`;
  const target = { kind: "pet", id: 7n } as const;
  const filters = [{ actor: "server" }, { action: "key.updated" }, { operator: "bob" }, { target }] as const;
  const times = [{}, { since: 5 }, { until: 9_000 }, { before: 9_000n, since: 5, until: 9_001 }];
  const queries = filters.flatMap((filter) =>
    times.map((time) => Object.assign({ limit: 500 }, filter, time)),
  );
  for (const query of queries) {
    const { rows } = await readBy(sql, auditPage(query, POSTGRES_DIALECT).page);
    // The entry of the cursor is read for its time.
    expect({ query, rows: rows - ("before" in query ? 1 : 0) }).toMatchObject({ rows: 0 });
  }
  await sql.close();
});
