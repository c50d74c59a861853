import { SQL } from "bun";
import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { createClock } from "../../../src/clock.ts";
import { runProgram } from "../../../trials/harness/child.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { contentsIn, postgresIn, sqliteIn } from "../../../trials/harness/contents.ts";
import { PETSTORE } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { withoutAudit } from "../../archive/sample-data.ts";
import { InProcessCli } from "../../cli/cli.ts";
import {
  earlierProgram,
  fixtureBackups,
  fixtureData,
  fixtureSql,
  PREVIOUS_RELEASE,
} from "./previous-release.ts";

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

test("SQLite: a backup before the upgrade, and one that the previous release made itself, are restored to both databases", async () => {
  const data = fixtureData(PREVIOUS_RELEASE);
  const own = temporaryDirectory("own");
  await petstore("backup", own, "--data", data);
  await succeed(earlierProgram(PREVIOUS_RELEASE), "keys", "revoke", "1", "--data", data);
  const migrated = fixtureData(PREVIOUS_RELEASE);
  await petstore("migrate", "--data", migrated);
  const expected = withoutAudit(await contentsIn(sqliteIn(migrated)));
  for (const backups of [own, fixtureBackups(PREVIOUS_RELEASE)]) {
    const plan = await petstore("restore", backups, "--replace", "--dry-run", "--json", "--data", data);
    expect(JSON.parse(plan)).toMatchObject({ keysRevokedSince: [1] });
    const restored = temporaryDirectory("restored");
    const out = await petstore("restore", backups, "--data", restored);
    expect(out).toContain("the server migrates the database when it starts");
    // It is the way back, too.
    const keys = await succeed(
      earlierProgram(PREVIOUS_RELEASE),
      "keys",
      "list",
      "--json",
      "--data",
      restored,
    );
    expect(JSON.parse(keys)).not.toBeEmpty();
    await petstore("migrate", "--data", restored);
    expect(withoutAudit(await contentsIn(sqliteIn(restored)))).toEqual(expected);
    const url = await postgresUrl();
    const onPostgres = ["--database-url", url, "--data", temporaryDirectory("data")];
    await petstore("restore", backups, ...onPostgres);
    const { tables } = withoutAudit(await contentsIn(postgresIn(url)));
    expect(tables).toEqual(expected.tables);
    expect(
      JSON.parse(await petstore("audit", "--action", "database.migrated", "--json", ...onPostgres)),
    ).toMatchObject([{ before: { schemaVersion: 25 } }]);
  }
});

test("PostgreSQL: tables of another release are neither backed up nor replaced, and the message says what to do", async () => {
  const url = await postgresUrl();
  await using sql = new SQL(url, { max: 1 });
  await sql.unsafe(fixtureSql(PREVIOUS_RELEASE)).simple();
  const [backups, data] = [temporaryDirectory("backups"), temporaryDirectory("data")];
  const run = async (...words: string[]) =>
    runProgram([...PETSTORE, ...words, "--database-url", url, "--data", data]);
  expect(await run("restore", fixtureBackups(PREVIOUS_RELEASE), "--replace")).toMatchObject({
    code: 1,
    err: expect.stringContaining(
      " has tables of an earlier release; restore with that release, or migrate them first with petstore migrate",
    ),
  });
  for (const [change, release] of [
    ["SELECT 1", "an earlier release"],
    ["INSERT INTO production.schema_migrations (version, name) VALUES (900, 'later')", "a newer release"],
  ] as const) {
    await sql.unsafe(change);
    expect(await run("backup", backups)).toMatchObject({
      code: 1,
      err: expect.stringContaining(` has tables of ${release}; make the backup with that release`),
    });
  }
  expect(readdirSync(backups).filter((name) => name.endsWith(".db"))).toEqual([]);
});
