import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import type { KeyStore } from "../../../src/domain/ports.ts";
import { MIGRATIONS as POSTGRES } from "../../../src/store/postgres/migrations.ts";
import { openDatabase } from "../../../src/store/sqlite/connection.ts";
import { MIGRATIONS as SQLITE } from "../../../src/store/sqlite/migrations.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite-store.ts";
import { BY, hash, storedSecret } from "../../key-store-arguments.ts";
import { createDatabase } from "./postgres-database.ts";
import { temporaryFolder } from "../../store/temporary-folder.ts";

const STEP = "owners, notes, labels and access of keys, hints of secrets, audit trail";
const stepsBefore = <T extends { readonly name: string }>(steps: readonly T[]) =>
  steps.slice(
    0,
    steps.findIndex(({ name }) => name === STEP),
  );

/** As the release before writes and reads them. */
const addKey = (n: number) => [
  `UPDATE key_revision SET revision = ${n}`,
  `INSERT INTO api_keys (name, plan, created_at, revision) VALUES ('shop ${n}', 'free', 0, ${n})`,
  `INSERT INTO key_secrets (hash, key_id) VALUES ('${hash(n)}', ${n})`,
];
const FIND = `SELECT api_keys.id, name, plan, created_at AS "createdAt", valid_until AS "validUntil"
  FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE hash = '${hash(1)}'`;

async function expectEarlierKeys(keys: KeyStore): Promise<void> {
  const [first] = await keys.listKeys();
  expect(first).toStrictEqual({
    id: 1,
    name: "shop 1",
    labels: [],
    plan: "free",
    access: "write",
    createdAt: 0,
  });
  expect([...(await keys.listSecrets([1]))]).toStrictEqual([[1, [{}]]]);
  await keys.addSecret(1, { ...storedSecret(9), overlapEndsAt: 5 }, BY);
  expect((await keys.listSecrets([1])).get(1)).toStrictEqual([
    { hint: "pet_live_9…9", createdAt: 0 },
    { validUntil: 5 },
  ]);
}

test("SQLite: earlier keys may write and their secrets have no hint; an older server continues", async () => {
  using folder = temporaryFolder();
  const options = { synchronous: "FULL", cacheKiB: 1024, busyTimeoutMs: 0 } as const;
  const before = openDatabase(folder.path("a.db"), { ...options, migrations: stepsBefore(SQLITE) });
  for (const statement of addKey(1)) before.run(statement);
  before.close();
  using older = new Database(folder.path("a.db"));
  const find = older.prepare(FIND);
  expect(find.get()).toMatchObject({ id: 1 });
  const { keys, close } = openSqlite(folder.path("a.db"));
  expect(find.get()).toMatchObject({ id: 1 });
  for (const statement of addKey(2)) older.run(statement);
  expect(await keys.getKey(2)).toMatchObject({ name: "shop 2", access: "write", labels: [] });
  await expectEarlierKeys(keys);
  await close();
});

test("PostgreSQL: earlier keys may write and their secrets have no hint; older instances continue", async () => {
  await using database = await createDatabase();
  const { sql } = database;
  await sql.unsafe(`CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now())`);
  for (const step of stepsBefore(POSTGRES)) {
    for (const statement of "sql" in step ? [step.sql] : step.statements) await sql.unsafe(statement);
    await sql`INSERT INTO schema_migrations (version, name) VALUES (${step.version}, ${step.name})`;
  }
  for (const statement of addKey(1)) await sql.unsafe(statement);
  const older = new SQL(database.url, { max: 1 });
  expect(await older.unsafe(FIND)).toHaveLength(1);
  const { keys } = await database.open();
  expect(await older.unsafe(FIND)).toHaveLength(1);
  for (const statement of addKey(2)) await older.unsafe(statement);
  expect(await keys.getKey(2)).toMatchObject({ name: "shop 2", access: "write", labels: [] });
  await expectEarlierKeys(keys);
  await older.close();
});
