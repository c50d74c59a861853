import type { SQL } from "bun";
import { expect, test } from "bun:test";
import { createDatabase } from "./postgres-database.ts";
import { until } from "../../timing.ts";

const BANNED = { action: "key.banned", target: { kind: "key", id: 7n } } as const;

/**
 * Inserts an entry as release 1.1.0 does, whose transaction takes no lock of its own. Returns a function that commits
 * it as soon as another transaction waits for it.
 */
async function insertBan(sql: SQL): Promise<() => Promise<void>> {
  const { promise: inserted, resolve: onInsert } = Promise.withResolvers<void>();
  const { promise: end, resolve: commit } = Promise.withResolvers<void>();
  const done = sql.begin(async (tx) => {
    await tx`INSERT INTO audit (at, actor, action, target_kind, target_id) VALUES (1, 'server', 'key.banned', 'key', 7)`;
    onInsert();
    await end;
  });
  await inserted;
  return async () => {
    await until(async () => {
      const [row] = await sql`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted LIMIT 1`;
      return row !== undefined;
    }, 10_000);
    commit();
    await done;
  };
}

test("audit entries become visible in the order of their identifiers, also those of an earlier release", async () => {
  await using database = await createDatabase();
  const { audit } = await database.open();
  const commit = await insertBan(database.sql);
  const second = audit.recordAudit({ at: 2, actor: { kind: "server" }, action: "key.created" });
  expect((await audit.listAudit({ after: 0n, limit: 9 })).items).toEqual([]);
  await commit();
  await second;
  const { items } = await audit.listAudit({ after: 0n, limit: 9 });
  expect(items.map(({ id, action }) => [id, action])).toEqual([
    [1n, "key.banned"],
    [2n, "key.created"],
  ]);
});

test("an entry whose commit is still waiting is not recorded a second time", async () => {
  await using database = await createDatabase();
  const { audit } = await database.open();
  const commit = await insertBan(database.sql);
  const second = audit.recordAuditUnless(BANNED, { ...BANNED, at: 1, actor: { kind: "server" } });
  await commit();
  expect(await second).toBe(false);
  expect((await audit.listAudit({ limit: 9 })).items).toHaveLength(1);
});
