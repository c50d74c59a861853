import { Database, type SQLQueryBindings } from "bun:sqlite";
import { expect, test } from "bun:test";
import type { KeyListQuery } from "../../src/domain/key-lists.ts";
import { keyPage } from "../../src/store/key-list.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sql/migration-steps.ts";
import { SQLITE_DIALECT } from "../../src/store/sqlite/dialect.ts";
import type { Statement } from "../../src/store/sql/steps.ts";

/** The steps of a statement on the empty tables of the store. */
function explain({ sql, values }: Statement) {
  using database = new Database(":memory:", { safeIntegers: true, strict: true });
  for (const migration of SQLITE_MIGRATIONS) database.run(migration.sql);
  const step = `EXPLAIN QUERY PLAN ${sql}`;
  return database
    .query<{ id: bigint; parent: bigint; detail: string }, SQLQueryBindings[]>(step)
    .all(...values);
}

const IN_ORDER = "SEARCH api_keys USING INTEGER PRIMARY KEY (rowid>?)";
const SORTED = "USE TEMP B-TREE FOR ORDER BY";
const LAST_USED = "SEARCH key_last_used USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN";
const GIVEN = ["MATERIALIZE windows", "SCAN jsonb_each VIRTUAL TABLE INDEX 1:"];
const BLOOM = "BLOOM FILTER ON windows (key_id=?)";
const MANY = Array.from({ length: 1_000 }, (_, i) => [i, i] as const);
const TODAY = "SEARCH windows USING AUTOMATIC COVERING INDEX (key_id=?) LEFT-JOIN";

test.each<[plan: string[], query: Partial<KeyListQuery>]>([
  [[IN_ORDER], {}],
  [[IN_ORDER], { filter: { isRevoked: false } }],
  [[IN_ORDER], { filter: { isRevoked: true }, after: 5 }],
  [["SEARCH api_keys USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"], { isDescending: true, after: 5 }],
  [[IN_ORDER], { filter: { isRevoked: false, plan: "pro", owner: "Ann" } }],
  [[IN_ORDER, SORTED], { sort: "name" }],
  [[IN_ORDER, LAST_USED], { filter: { unusedSince: 1, isRevoked: false } }],
  [[IN_ORDER, LAST_USED, SORTED], { sort: "lastUsedAt" }],
  [[...GIVEN, IN_ORDER, BLOOM, TODAY, SORTED], { sort: "usedToday", usedToday: MANY, after: 5 }],
])("a page of keys reads each key once, and what it is sorted by from an index: %p", (plan, query) => {
  expect(keyListPlan(query)).toEqual(plan);
});

test("deprecated calls are found by their operation", () => {
  const plan = keyListPlan({ filter: { deprecatedSince: 1 } });
  expect(plan).toContain("SEARCH deprecated_use USING PRIMARY KEY (operation=?)");
});

function keyListPlan(query: Partial<KeyListQuery>): string[] {
  const page = keyPage({ limit: 50, now: 7, ...query }, SQLITE_DIALECT, { revokedAt: null, value: 1 });
  return explain(page).map(({ detail }) => detail);
}
