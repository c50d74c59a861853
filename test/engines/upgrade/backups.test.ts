import { SQL } from "bun";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClock } from "../../../src/clock.ts";
import { runProgram } from "../../../trials/harness/child.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { contentsIn, postgresIn, sqliteIn } from "../../../trials/harness/contents.ts";
import { PETSTORE } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { withoutAudit } from "../../archive/sample-data.ts";
import { InProcessCli } from "../../cli/cli.ts";
import { earlierProgram, fixtureBackups, fixtureData, fixtureSql } from "./previous-release.ts";

setDefaultTimeout(60_000);

async function succeed(program: readonly string[], ...argv: string[]): Promise<string> {
  const { code, out, err } = await runProgram([...program, ...argv]);
  expect({ code, argv, ...(code !== 0 && { err }) }).toEqual({ code: 0, argv });
  return out;
}
/** A command of this release, in this process, which is faster. */
async function petstore(...argv: string[]): Promise<string> {
  const { code, out, err } = await new InProcessCli().run(argv, {}, { clock: createClock(), warn() {} });
  expect({ code, argv, ...(code !== 0 && { err }) }).toEqual({ code: 0, argv });
  return out;
}

/** The rows of all tables as PostgreSQL writes them, but for the time of the last backup. */
async function rowsIn(sql: SQL): Promise<unknown> {
  const tables: { name: string }[] =
    await sql`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'production' ORDER BY 1`;
  const rows = tables.map(({ name }) =>
    sql.unsafe(`SELECT t::text FROM production."${name}" AS t WHERE t::text !~ 'last-backup' ORDER BY 1`),
  );
  return [tables, await Promise.all(rows)];
}

describe.each(["1.1.0", "1.2.0"] as const)("release %s", (release) => {
  test("PostgreSQL: a backup before the upgrade changes no table, and has what one after the migration has", async () => {
    const url = await postgresUrl();
    await using sql = new SQL(url, { max: 1 });
    await sql.unsafe(fixtureSql(release)).simple();
    await sql.unsafe(`INSERT INTO production.server_settings VALUES ('server-secret', 'the old secret')
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`);
    const before = await rowsIn(sql);
    const [backups, data] = [temporaryDirectory("backups"), temporaryDirectory("data")];
    const onPostgres = ["--database-url", url, "--data", data];
    await petstore("backup", backups, ...onPostgres);
    expect(await rowsIn(sql)).toEqual(before);
    const name = readdirSync(backups).find((entry) => entry.endsWith(".db"));
    expect(readFileSync(join(backups, name ?? ""), "latin1")).not.toContain("the old secret");
    const elsewhere = temporaryDirectory("elsewhere");
    await petstore("restore", backups, "--data", elsewhere);

    // What is revoked by now is named, although the tables are those of the earlier release.
    await succeed(earlierProgram(release), "keys", "revoke", "1", ...onPostgres);
    const plan = await petstore("restore", backups, "--replace", "--dry-run", "--json", ...onPostgres);
    expect(JSON.parse(plan)).toMatchObject({ keysRevokedSince: [1], keysCreatedSince: [] });
    await petstore("restore", backups, "--replace", ...onPostgres);
    const restored = withoutAudit(await contentsIn(postgresIn(url)));
    expect(withoutAudit(await contentsIn(sqliteIn(elsewhere)))).toEqual(restored);

    const migrated = await postgresUrl();
    await using other = new SQL(migrated, { max: 1 });
    await other.unsafe(fixtureSql(release)).simple();
    await petstore("migrate", "--database-url", migrated, "--data", data);
    // Release 1.1.0 stored no limits: a backup of its tables has none, and a server takes the first ones.
    const { tables, ...rest } = withoutAudit(await contentsIn(postgresIn(migrated)));
    const none = { rows: 0, checksum: "0".repeat(16) };
    const has = release === "1.1.0" ? { plans: none, ban_rules: none } : {};
    expect(restored).toEqual({ ...rest, tables: { ...tables, ...has } });
  });

  test("SQLite: a backup before the upgrade, and one that the release made itself, are restored", async () => {
    const data = fixtureData(release);
    const own = temporaryDirectory("own");
    await petstore("backup", own, "--data", data);
    await succeed(earlierProgram(release), "keys", "revoke", "1", "--data", data);
    const migrated = fixtureData(release);
    await petstore("migrate", "--data", migrated);
    const expected = withoutAudit(await contentsIn(sqliteIn(migrated)));
    for (const backups of [own, fixtureBackups(release)]) {
      const plan = await petstore("restore", backups, "--replace", "--dry-run", "--json", "--data", data);
      expect(JSON.parse(plan)).toMatchObject({ keysRevokedSince: [1] });
      const restored = temporaryDirectory("restored");
      const out = await petstore("restore", backups, "--data", restored);
      expect(out).toContain("the server migrates the database when it starts");
      // It is the way back, too.
      const keys = await succeed(earlierProgram(release), "keys", "list", "--json", "--data", restored);
      expect(JSON.parse(keys)).not.toBeEmpty();
      await petstore("migrate", "--data", restored);
      expect(withoutAudit(await contentsIn(sqliteIn(restored)))).toEqual(expected);
      const url = await postgresUrl();
      await petstore("restore", backups, "--database-url", url, "--data", temporaryDirectory("data"));
      const { tables } = withoutAudit(await contentsIn(postgresIn(url)));
      expect(tables).toEqual(expected.tables);
    }
  });
});

test("PostgreSQL: tables of a release before 1.1.0, or of a newer one, are a failure that says what to do", async () => {
  const url = await postgresUrl();
  await using sql = new SQL(url, { max: 1 });
  await sql.unsafe(fixtureSql("1.1.0")).simple();
  const [backups, data] = [temporaryDirectory("backups"), temporaryDirectory("data")];
  const backUp = () => runProgram([...PETSTORE, "backup", backups, "--database-url", url, "--data", data]);
  for (const [change, release] of [
    ["DELETE FROM production.schema_migrations WHERE version > 11", "a release before 1.1.0"],
    ["INSERT INTO production.schema_migrations (version, name) VALUES (900, 'later')", "a newer release"],
  ] as const) {
    await sql.unsafe(change);
    const { code, err } = await backUp();
    expect(code).toBe(1);
    expect(err).toContain(` has tables of ${release}; make the backup with that release`);
  }
  expect(readdirSync(backups).filter((name) => name.endsWith(".db"))).toEqual([]);
});
