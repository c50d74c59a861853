import { SQL } from "bun";
import { expect, spyOn, test } from "bun:test";
import { version } from "../../../package.json";
import { scheduler } from "../../../src/runtime/scheduler.ts";
import { migratePostgres } from "../../../src/store/postgres/migrate.ts";
import { POSTGRES_MIGRATIONS } from "../../../src/store/sql/migration-steps.ts";
import type { PostgresMigration, TableUse } from "../../../src/store/sql/migrations.ts";
import { outputOf } from "../../../trials/harness/machine.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { executable, PG_DUMP } from "../../../trials/harness/programs.ts";
import { BY } from "../../key-store-arguments.ts";
import { fixtureSql } from "../upgrade/previous-release.ts";
import { until } from "../../timing.ts";
import { createDatabase, createMigrated, type TestDatabase } from "./postgres-database.ts";

const step = (number: number, sql: PostgresMigration["sql"], worksWith = "1.0.0"): PostgresMigration => ({
  version: 900 + number,
  name: `step ${number}`,
  worksWith,
  sql,
});
const ADD_COLUMN = step(1, "ALTER TABLE orders ADD COLUMN note text");
const ADD_INDEX = step(2, [
  "DROP INDEX CONCURRENTLY IF EXISTS orders_by_note",
  "CREATE INDEX CONCURRENTLY orders_by_note ON orders (note)",
]);

/** Takes further steps after those of this release. */
const migrate = ({ url }: TestDatabase, steps: readonly PostgresMigration[], use: TableUse = BY) =>
  migratePostgres(url, { schema: undefined, use, migrations: [...POSTGRES_MIGRATIONS, ...steps] });

const newestStep = async ({ sql }: TestDatabase) => {
  const [{ newest }] = await sql`SELECT max(version)::int AS newest FROM schema_migrations`;
  return newest;
};

test("newer tables are rejected unless they say that this release can run on them", async () => {
  await using database = await createMigrated();
  await migrate(database, [ADD_COLUMN]);
  await (await database.open()).close();
  await migrate(database, [ADD_COLUMN, step(2, "SELECT 1", "999.1.0")]);
  await expect(database.open()).rejects.toThrow(
    `: the tables need petstore 999.1.0 or newer; this is petstore ${version}`,
  );
});

test("each step stores the oldest release that can run on the tables", async () => {
  await using database = await createMigrated();
  await migrate(database, [ADD_COLUMN]);
  const steps =
    await database.sql`SELECT version::int, name, oldest_release AS "worksWith" FROM schema_migrations`;
  const expected = [...POSTGRES_MIGRATIONS, ADD_COLUMN].map((each) => ({
    version: each.version,
    name: each.name,
    worksWith: each.worksWith,
  }));
  expect([...steps]).toEqual(expected);
});

test("tables of a release before 1.3.0 are rejected, also by who migrates", async () => {
  await using database = await createMigrated();
  await database.sql`UPDATE schema_migrations SET version = version - 20`;
  for (const use of ["existing", "create", BY] as const) {
    await expect(migrate(database, [], use)).rejects.toThrow(
      ": the tables are of a release before 1.3.0; petstore 1.3.0 migrates them, and restores backups of them",
    );
  }
});

test("new tables are the same as those of release 1.3.0 after the migration, and have no row more", async () => {
  const earlier = await postgresUrl();
  await using sql = new SQL(earlier, { max: 1 });
  await sql.unsafe(fixtureSql("1.3.0")).simple();
  const made = await postgresUrl();
  const dumpOf = async (url: string) => {
    await migratePostgres(url, { schema: "production", use: BY });
    const flags = ["--schema-only", "--schema=production", "--no-owner", `--dbname=${url}`];
    // Commands of psql have random keys.
    return outputOf([executable(PG_DUMP), ...flags]).replaceAll(/^\\.*$/gm, "");
  };
  expect(await dumpOf(made)).toBe(await dumpOf(earlier));
  const data = outputOf([
    executable(PG_DUMP),
    "--data-only",
    "--inserts",
    "--schema=production",
    `--dbname=${made}`,
  ]);
  const filled = [...data.matchAll(/^INSERT INTO production\.(\w+)/gm)].map(([, name]) => name);
  expect([...new Set(filled)]).toEqual(["ban_rules", "key_revision", "plans", "schema_migrations"]);
});

test("tables of an earlier release are migrated only by who may, who is in the audit trail", async () => {
  await using database = await createMigrated();
  const from = await newestStep(database);
  for (const use of ["existing", "create"] as const) {
    await expect(migrate(database, [ADD_COLUMN, ADD_INDEX], use)).rejects.toThrow(
      `its tables have version ${from}, and petstore ${version} needs version 902`,
    );
  }
  expect(await newestStep(database)).toBe(from);
  const migrated: unknown[] = [];
  const use = { ...BY, onMigrated: (entry: unknown) => void migrated.push(entry) };
  for (let i = 0; i < 2; i++) await migrate(database, [ADD_COLUMN, ADD_INDEX], use);
  const entry = {
    ...BY,
    action: "database.migrated",
    before: { schemaVersion: from },
    after: { schemaVersion: 902, release: version },
  };
  expect(migrated).toMatchObject([entry]);
  const { audit } = await database.open();
  expect((await audit.listAudit({ limit: 10 })).items).toMatchObject([entry]);
});

test("a migration that fails is rolled back, and those before it remain", async () => {
  await using database = await createMigrated();
  const broken = step(2, "CREATE TABLE next (x int); INSERT INTO nowhere VALUES (1)");
  await expect(migrate(database, [ADD_COLUMN, broken])).rejects.toThrow(/"nowhere" does not exist/);
  expect(await newestStep(database)).toBe(901);
  const [{ exists }] = await database.sql`SELECT to_regclass('next') IS NOT NULL AS exists`;
  expect(exists).toBe(false);
});

test("servers that start together wait for the one that migrates, and each step is applied once", async () => {
  await using database = await createMigrated();
  const steps = [ADD_COLUMN, ADD_INDEX, step(3, "INSERT INTO server_settings VALUES ('step', '3')")];
  await Promise.all(Array.from({ length: 5 }, () => migrate(database, steps)));
  expect(await newestStep(database)).toBe(903);
});

test("a step is rejected while a server runs that cannot use its tables", async () => {
  await using database = await createMigrated();
  const { serverReports } = await database.open();
  await serverReports.report("a", JSON.stringify({ version: "999.0.0" }));
  const next = step(1, "CREATE TABLE next (x int)", "999.1.0");
  // The server may be about to end, so the migration waits for it for 5 s.
  let now = 0;
  const asOfOtherServer = async (sleeps: () => Promise<void>) => {
    using clock = spyOn(scheduler, "now").mockImplementation(() => now);
    using sleep = spyOn(scheduler, "sleep").mockImplementation(async (ms) => {
      now += ms;
      await sleeps();
    });
    await migrate(database, [next]);
    expect(clock).toHaveBeenCalled();
    return sleep.mock.calls.length;
  };
  await expect(asOfOtherServer(async () => {})).rejects.toThrow(
    "step 901 (step 1) leaves tables that need petstore 999.1.0 or newer, and a server of an earlier release is running; stop it first, or run petstore migrate --force; nothing was changed",
  );
  expect(now).toBe(5_200);
  const ends = async () => void (await database.sql`DELETE FROM servers`);
  expect(await asOfOtherServer(ends)).toBe(1);
  await serverReports.report("b", JSON.stringify({ version: "999.1.0" }));
  await migrate(database, [next, step(2, "SELECT 1", "999.1.0")]);
  await migrate(database, [next, step(2, "SELECT 1"), step(3, "SELECT 1", "999.2.0")], {
    ...BY,
    isForced: true,
  });
  expect(await newestStep(database)).toBe(903);
});

test("a migration that waits for the lock of a table lets other sessions use the table", async () => {
  await using database = await createMigrated();
  await database.sql`INSERT INTO pets (name, category_id) VALUES ('Rex', 1)`;
  await database.sql`INSERT INTO orders (pet_id, status, created_at) VALUES (1, 'placed', 0)`;
  const from = await newestStep(database);
  const older = new SQL(database.url, { max: 1 });
  let migration: Promise<unknown> = Promise.resolve();
  // The transaction holds its locks as pg_dump does while it runs.
  await database.sql.begin("isolation level repeatable read read only", async (tx) => {
    await tx`SELECT count(*) FROM orders`;
    migration = migrate(database, [ADD_COLUMN]);
    const waitsForLock = async () =>
      (await older`SELECT FROM pg_locks WHERE NOT granted AND relation = 'orders'::regclass`).length > 0;
    await until(waitsForLock, 5_000);
    // Waits for as long as the migration stands before it in the queue.
    await older`UPDATE orders SET status = 'completed' WHERE id = 1`;
    const [{ newest }] = await older`SELECT max(version) AS newest FROM schema_migrations`;
    expect(newest).toBe(from);
  });
  await migration;
  await older.close({ timeout: 0 });
  expect(await newestStep(database)).toBe(901);
});

/** The step that stores the first limits and ban rules. */
const POLICY_STEP = 30;

test("tables get the limits and ban rules of release 1.3.0, unless they have some", async () => {
  const stored =
    "INSERT INTO plans VALUES ('free', 7, 70), ('pro', 8, 80), ('business', 9, 90), ('anonymous', 1, 10)";
  for (const isStored of [false, true]) {
    await using database = await createDatabase();
    const migrations = POSTGRES_MIGRATIONS.filter(({ version: number }) => number < POLICY_STEP);
    await migratePostgres(database.url, { schema: undefined, use: BY, migrations });
    if (isStored) {
      await database.sql.unsafe(stored);
      await database.sql`INSERT INTO ban_rules VALUES (1, 3, 0, 60000, 60000)`;
    }
    await database.open();
    const plans: { name: string; limits: string }[] =
      await database.sql`SELECT name, per_minute || '/' || per_day AS limits FROM plans ORDER BY per_day, name`;
    expect(plans.map(({ name, limits }) => `${name} ${limits}`)).toEqual(
      isStored
        ? ["anonymous 1/10", "free 7/70", "pro 8/80", "business 9/90"]
        : ["free 60/1000", "anonymous 300/10000", "pro 300/10000", "business 1000/100000"],
    );
    const rules =
      "SELECT concat_ws(' ', strikes, grace_ms, length_ms, max_length_ms) AS rules FROM ban_rules";
    const expected = isStored ? "3 0 60000 60000" : "10 1000 300000 2400000";
    expect([...(await database.sql.unsafe(rules))]).toEqual([{ rules: expected }]);
  }
});

test("a start that was interrupted while it built an index builds it again", async () => {
  await using database = await createMigrated();
  await migrate(database, [ADD_COLUMN]);
  await database.sql`CREATE INDEX orders_by_note ON orders (note)`;
  const isValid = async () => {
    const [index] = await database.sql`SELECT indisvalid AS "isValid" FROM pg_index
      WHERE indexrelid = 'orders_by_note'::regclass`;
    return index.isValid;
  };
  await database.sql`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'orders_by_note'::regclass`;
  expect(await isValid()).toBe(false);
  await migrate(database, [ADD_COLUMN, ADD_INDEX]);
  expect(await isValid()).toBe(true);
});

test("a start fails if the database hangs after it has built an index", async () => {
  await using database = await createMigrated();
  await migrate(database, [ADD_COLUMN]);
  using timers = spyOn(scheduler, "setTimeout");
  // A minute takes two seconds.
  timers.mockImplementation((work, ms) => setTimeout(work, ms / 30));
  await database.sql.begin(async (tx) => {
    await tx`LOCK TABLE schema_migrations IN SHARE MODE`;
    await expect(migrate(database, [ADD_COLUMN, ADD_INDEX])).rejects.toThrow("no response within 60000 ms");
  });
});
