import { expect, test } from "bun:test";
import { createDatabase } from "./postgres-database.ts";
import { until } from "../../timing.ts";

test("audit entries become visible in the order of their identifiers, also those of an earlier release", async () => {
  await using database = await createDatabase();
  const { sql } = database;
  const { audit } = await database.open();
  const insert = "INSERT INTO audit (at, actor, action) VALUES (1, 'server', 'key.banned')";
  const { promise: inserted, resolve: onInsert } = Promise.withResolvers<void>();
  const { promise: end, resolve: commit } = Promise.withResolvers<void>();
  // Release 1.1.0 writes so: the transaction takes no lock of its own.
  const first = sql.begin(async (tx) => {
    await tx.unsafe(insert);
    onInsert();
    await end;
  });
  await inserted;
  const second = audit.recordAudit({ at: 2, actor: { kind: "server" }, action: "key.created" });
  const waiting = async () =>
    (await sql`SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)[0]
      .count;
  await until(async () => (await waiting()) !== 0, 10_000);
  expect((await audit.listAudit({ after: 0n, limit: 9 })).items).toEqual([]);
  commit();
  await Promise.all([first, second]);
  const { items } = await audit.listAudit({ after: 0n, limit: 9 });
  expect(items.map(({ id, action }) => [id, action])).toEqual([
    [1n, "key.banned"],
    [2n, "key.created"],
  ]);
});
