import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { AuditQuery } from "../../../src/domain/audit.ts";
import { auditPage } from "../../../src/store/audit-rows.ts";
import { POSTGRES_DIALECT } from "../../../src/store/postgres/audit.ts";
import { SQLITE_DIALECT, SqliteAuditStore } from "../../../src/store/sqlite/audit.ts";
import { MIGRATIONS } from "../../../src/store/sqlite/migrations.ts";
import { emptyDatabase } from "./postgres-database.ts";
import { temporaryDatabase } from "../../store/sqlite-database.ts";

const KEY = { kind: "key", id: 7n } as const;

/** The index of the first condition that is given, in this order. */
const PAGES: readonly [index: string, query: Omit<AuditQuery, "limit">][] = [
  ["audit_by_time", {}],
  ["audit_by_time", { since: 1, until: 2 }],
  ["audit_by_time", { until: 2, before: 5n }],
  ["audit_by_target", { target: KEY }],
  ["audit_by_target", { target: KEY, since: 1, before: 5n }],
  ["audit_by_action", { action: "key.banned" }],
  ["audit_by_action", { action: "key.banned", until: 2, before: 5n }],
  ["audit_by_actor", { actor: "console" }],
  ["audit_by_actor", { actor: "console", since: 1 }],
  ["audit_by_action_and_actor", { action: "key.banned", actor: "console" }],
  ["audit_by_action_and_actor", { action: "key.banned", actor: "console", until: 2, before: 5n }],
  ["audit_by_target", { target: KEY, action: "key.banned", actor: "console", since: 1 }],
];

describe("SQLite", () => {
  test.each(PAGES)("a page is read from %s and not sorted: %p", (index, query) => {
    using database = new Database(":memory:", { safeIntegers: true, strict: true });
    for (const { sql } of MIGRATIONS) database.run(sql);
    const { sql, values } = auditPage({ ...query, limit: 50 }, SQLITE_DIALECT);
    const steps = database
      .query<{ detail: string }, typeof values>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...values);
    const plan = steps.map(({ detail }) => detail).join("; ");
    expect(plan).toMatch(new RegExp(`^(SEARCH|SCAN) audit USING INDEX ${index}\\b`));
    expect(plan).not.toContain("TEMP B-TREE");
  });

  test("a page of the oldest entries costs what one of the newest does, among 200,000", () => {
    using db = temporaryDatabase();
    db.connection.run(`INSERT INTO audit (at, actor, action, target_kind, target_id)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
      SELECT i, iif(i % 50000 = 0, 'console', 'server'), iif(i % 40000 = 0, 'key.revoked', 'key.banned'),
        'key', i % 10000 FROM n`);
    const audit = new SqliteAuditStore(db.connection);
    const newest = fastest(() => audit.listAudit({ limit: 50 }));
    for (const query of [
      { until: 1_000 },
      { before: 1_000n },
      { target: KEY },
      { action: "key.revoked" },
      { actor: "console" },
      { actor: "console", action: "key.banned", since: 100_000 },
      { actor: "server", action: "key.revoked" },
    ] as const) {
      // A scan would take hundreds of times as long.
      expect(fastest(() => audit.listAudit({ limit: 50, ...query })) / newest).toBeLessThan(5);
    }
    db.connection.close();
  });
});

test("PostgreSQL: every page of 50 among 20,000 entries reads fewer than 120 blocks", async () => {
  await using database = await emptyDatabase();
  const { sql } = database;
  await sql`INSERT INTO audit (at, actor, action, target_kind, target_id)
    SELECT n, CASE WHEN n % 5000 = 0 THEN 'console' ELSE 'server' END,
      CASE WHEN n % 4000 = 0 THEN 'key.revoked' ELSE 'key.banned' END, 'key', n % 1000
    FROM generate_series(1, 20000) AS n`;
  await sql`ANALYZE audit`;
  for (const query of [
    {},
    { until: 1_000 },
    { before: 1_000n },
    { target: KEY },
    { action: "key.revoked" },
    { action: "key.banned", until: 1_000 },
    { actor: "console" },
    { actor: "console", action: "key.revoked" },
    { actor: "server", action: "key.revoked" },
  ] as const) {
    const { sql: text, values } = auditPage({ ...query, limit: 50 }, POSTGRES_DIALECT);
    const [row] = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, values);
    const [{ Plan: plan }] = row["QUERY PLAN"];
    const blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    expect(blocks).toBeLessThan(120);
  }
});

function fastest(work: () => unknown): number {
  let best = Infinity;
  for (let i = 0; i < 300; i++) {
    const before = Bun.nanoseconds();
    work();
    best = Math.min(best, Bun.nanoseconds() - before);
  }
  return best;
}
