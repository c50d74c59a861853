import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { version } from "../../../package.json";
import { Database } from "bun:sqlite";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openStores } from "../../../src/adapters/open-stores.ts";
import { putQuotas } from "../../../src/store/postgres/quota-rows.ts";
import { postgresTables } from "../../../src/store/postgres/table-store.ts";
import { inspectDatabase } from "../../../src/store/sqlite/snapshot.ts";
import { sqliteTables } from "../../../src/store/sqlite/table-store.ts";
import { contentsIn, postgresIn } from "../../../trials/harness/contents.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { fillData, quotaNow, withoutAudit } from "../../archive/sample-data.ts";
import { cleanUp, cliDirectory, failure, InProcessCli, stepsIn } from "../../cli/cli.ts";
import { NO_DATABASE } from "../../cli/command-lines.ts";
import { dataIn } from "../../data-directory.ts";
import { BY } from "../../key-store-arguments.ts";

afterAll(cleanUp);

/** What a copy or a restore of the sample data has of every table. */
const filled = new InProcessCli();
await fillData(filled.dataDir, 2_100);
const filledStore = join(filled.dataDir, "production.db");
{
  // The sample data has no rows of these tables.
  using database = new Database(filledStore);
  database.run("INSERT INTO deprecated_use VALUES ('getPet', 1, 7)");
  database.run("INSERT INTO imports (fingerprint, source, options, started_at) VALUES ('f', 's', '{}', 1)");
  database.run("INSERT INTO webhook (sole, source, position) VALUES (1, 's', 3)");
}
const original = await contentsIn(sqliteTables(filledStore));
const firstBackups = cliDirectory();
await filled.run(["backup", firstBackups]);
const firstBackup = join(firstBackups, "production-2026-11-15T12-00-00Z.db");

let cli: InProcessCli;
let url: string;
let backups: string;
let onPostgres: string[];
beforeEach(async () => {
  cli = new InProcessCli();
  url = await postgresUrl();
  backups = cliDirectory();
  onPostgres = ["--database-url", url];
});

const contents = () => contentsIn(postgresIn(url));
const restore = (from: string, ...flags: string[]) => cli.run(["restore", from, ...onPostgres, ...flags]);

async function restored(from: string, ...flags: string[]): Promise<string> {
  const { code, out, err } = await restore(from, ...flags);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

async function backUp(...flags: string[]): Promise<string> {
  return (await cli.json<{ path: string }>("backup", backups, ...onPostgres, ...flags)).path;
}

test("a backup of a newer release that this one can run on is not restored to PostgreSQL, which would lack what is new", async () => {
  const source = new InProcessCli();
  await fillData(source.dataDir);
  using database = new Database(join(source.dataDir, "production.db"));
  database.run("ALTER TABLE pets ADD COLUMN later TEXT");
  database.run(
    "INSERT INTO schema_migrations (version, name, oldest_release) VALUES (900, 'later', '1.0.0')",
  );
  const { path } = await source.json<{ path: string }>("backup", backups);
  expect(await cli.err(["restore", path, ...onPostgres])).toBe(
    `the backup ${path} cannot be used: a restore to PostgreSQL by petstore ${version} would lack what is new in its tables; restore it with the release that made it`,
  );
  expect(await postgresIn(url).exists()).toBeFalse();
});

describe("backups of both databases are the same", () => {
  test("SQLite, backup, PostgreSQL, backup, SQLite: all rows of all tables, and one audit entry of each restore", async () => {
    const empty = Object.entries(original.tables).filter(([, { rows }]) => rows === 0);
    expect(empty).toEqual([]);
    await restored(firstBackup);
    expect(withoutAudit(await contents())).toEqual(withoutAudit(original));
    const second = await backUp();
    const back = new InProcessCli({ hasData: false });
    expect((await back.run(["restore", second])).code).toBe(0);
    const store = join(back.dataDir, "production.db");
    expect(withoutAudit(await contentsIn(sqliteTables(store)))).toEqual(withoutAudit(original));
    const entries = await back.json<{ action: string; after: unknown }[]>(
      "audit",
      "--action",
      "data.restored",
    );
    expect(entries.map(({ after }) => after)).toEqual([
      {
        backup: "production-2026-11-15T12-00-00Z.db",
        backupCreatedAt: "2026-11-15T12:00:00.000Z",
        replaced: null,
      },
      {
        backup: "production-2026-11-15T12-00-00Z.db",
        backupCreatedAt: "2026-11-15T12:00:00.000Z",
        replaced: null,
      },
    ]);
    expect(inspectDatabase(store)).toMatchObject({ problems: [] });
    expect(readdirSync(back.dataDir).toSorted()).toEqual([
      "production-limits.db",
      "production.db",
      "production.lock",
    ]);
  });

  test("a backup of PostgreSQL has what one of SQLite has, and a file that says what it is", async () => {
    await restored(firstBackup);
    const stores = await openStores(dataIn("", url));
    const hash = (digit: string) => digit.repeat(64);
    const token = { hash: hash("4"), hint: "" };
    const operator = await stores.operators.createOperator({ name: "zoe", role: "admin" }, token, BY);
    const ends = { operatorId: "id" in operator ? operator.id : 0, endsAt: Date.now() + 3_600_000 };
    await stores.operators.createCode({ codeHash: hash("1"), ...ends }, Date.now());
    const times = { createdAt: Date.now(), ...ends };
    const session = { cookieHash: hash("2"), secretHash: hash("3"), tokenHash: token.hash, ...times };
    await stores.operators.createSession(session, { ...BY, action: "admin.signed-in" });
    await stores.serverReports.report("one", "report-of-one");
    await stores.close();
    const { code, out, err } = await cli.run(["backup", backups, ...onPostgres]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const name = "production-2026-11-15T12-00-00Z.db";
    expect(out).toStartWith(`Backed up 2,099 pets, 1 order and 2 keys to ${join(backups, name)} (`);
    expect(readdirSync(backups).toSorted()).toEqual([".production.lock", name, `${name}.sha256`]);
    using database = new Database(join(backups, name), { readonly: true });
    expect(database.query("SELECT environment, created_at FROM backup").all()).toEqual([
      { environment: "production", created_at: "2026-11-15T12:00:00.000Z" },
    ]);
    const bytes = readFileSync(join(backups, name), "latin1");
    expect([hash("1"), hash("2"), hash("3"), "report-of-one"].filter((text) => bytes.includes(text))).toEqual(
      [],
    );
    expect(bytes).toContain(token.hash);
    await using sql = new SQL(url, { max: 1 });
    const [row] = await sql`SELECT value FROM production.server_settings WHERE name = 'last-backup'`;
    expect(row).toEqual({ value: String(Date.UTC(2026, 10, 15, 12)) });
  });

  test("--keep, the time in the name, progress and failures are those of SQLite", async () => {
    expect(await cli.err(["backup", backups, ...onPostgres])).toMatch(NO_DATABASE);
    await using sql = new SQL(url, { max: 1 });
    expect(await sql`SELECT to_regnamespace('production')::text AS name`).toEqual([{ name: null }] as never);
    await restored(firstBackup);
    for (let i = 0; i < 3; i++) await backUp("--keep", "2");
    const names = readdirSync(backups).filter((name) => name.endsWith(".db"));
    expect(names.toSorted()).toEqual([
      "production-2026-11-15T12-00-01Z.db",
      "production-2026-11-15T12-00-02Z.db",
    ]);
    const { progress } = await cli.runSlowly("backup", backups, ...onPostgres);
    expect(stepsIn(progress)).toEqual(["copying", "comparing", "checking", "computing the checksum"]);
    expect(progress).toMatch(/^petstore: copying: 2,\d{3} rows/m);
    const before = readdirSync(backups);
    await sql`ALTER TABLE production.pets RENAME COLUMN name TO another`;
    await expect(cli.run(["backup", backups, ...onPostgres])).rejects.toThrow('column "name" does not exist');
    expect(readdirSync(backups)).toEqual(before);
  });
});

describe("a restore to PostgreSQL", () => {
  /** Time passes: keys are revoked, narrowed and created, and pets are added. */
  async function changeData(): Promise<void> {
    cli.clock.advance(3_600_000);
    for (const line of [
      "keys revoke 1",
      "keys create --name third --plan free",
      "keys update 2 --access read",
      "keys rotate 2 --overlap 0",
      "pets add --name later --category 1",
      "operators create --name zoe --role admin",
      "operators revoke ann",
    ])
      expect((await cli.run([...line.split(" "), ...onPostgres])).err).toBe("");
  }

  test("overwrites nothing: with --replace the present schema gets another name, and the keys that changed since are named", async () => {
    await restored(firstBackup);
    await changeData();
    await using sql = new SQL(url, { max: 1 });
    await sql`SET search_path = production`;
    await putQuotas(sql, [[2, quotaNow()]]);
    const before = await contents();
    const place = `PostgreSQL at ${new URL(url).host}${new URL(url).pathname} (production)`;
    expect(await restore(firstBackup)).toEqual(
      failure(
        `${place} has data, and a restore overwrites nothing; with --replace, that gets another name first`,
      ),
    );
    const dry = await restored(firstBackup, "--replace", "--dry-run");
    expect(await contents()).toEqual(before);
    const out = await restored(firstBackup, "--replace");
    const replaced = "production_replaced_2026_11_15t13_00_00z";
    for (const text of [
      `To            ${place}\n`,
      `Present data  gets the name ${replaced}\n`,
      "warning: keys revoked since the backup are valid again: run petstore keys revoke 1\n",
      "warning: secrets replaced since are valid again, and the new ones are not: run petstore keys rotate 2 --overlap 0\n",
      "warning: keys made read-only since can write again: run petstore keys update 2 --access read\n",
      "warning: keys created since are lost: 3\n",
      "have their earlier token, role and expiry: ann\n",
    ]) {
      expect(dry).toContain(text);
      expect(out).toContain(text);
    }
    const after = await contents();
    const ids = { pets: before.counters["pets"], api_keys: before.counters["api_keys"] };
    expect(after.counters).toMatchObject(ids as never);
    expect(after.tables["pets"]).toEqual(original.tables["pets"] as never);
    const kept = await contentsIn(postgresTables({ url, schema: replaced }));
    expect(kept).toEqual(before);
    const counted = await sql`SELECT key_id::int AS id FROM production.quotas ORDER BY 1`;
    expect([...counted]).toEqual([{ id: 1 }, { id: 2 }]);
    // Identifiers of lost rows are not assigned again.
    const added = await cli.json<{ id: number }>(
      "pets",
      "add",
      "--name",
      "x",
      "--category",
      "1",
      ...onPostgres,
    );
    expect(Number(added.id)).toBe(2_102);
    const [entry] = await cli.json<{ after: unknown }[]>("audit", ...onPostgres, "--action", "data.restored");
    expect(entry?.after).toMatchObject({ replaced });
    expect(existsSync(join(cli.dataDir, "production.db.restored"))).toBeFalse();
    // Another one within the same second.
    expect(await restored(firstBackup, "--replace")).toContain(
      `gets the name ${replaced.replace("00z", "01z")}\n`,
    );
  });

  test("fails while a server uses the database, and into a schema with something else", async () => {
    await restored(firstBackup);
    const server = await cli.serve(onPostgres);
    const other = new InProcessCli();
    const { err, code } = await other.run(["restore", firstBackup, "--replace", ...onPostgres]);
    expect(code).toBe(1);
    expect(err).toMatch(
      /^\d+ sessions? of Petstore in production use PostgreSQL at .*; stop all servers first$/,
    );
    await server.stop();
    const elsewhere = await postgresUrl();
    await using sql = new SQL(elsewhere, { max: 1 });
    await sql.unsafe("CREATE SCHEMA production; CREATE TABLE production.x ()");
    await expect(other.run(["restore", firstBackup, "--database-url", elsewhere])).rejects.toThrow(
      "cannot drop schema production because other objects depend on it",
    );
    expect(await sql`SELECT to_regnamespace('production_copy')::text AS name`).toEqual([
      { name: null },
    ] as never);
    await sql.unsafe("DROP TABLE production.x");
    expect((await other.run(["restore", firstBackup, "--database-url", elsewhere])).code).toBe(0);
  });
});

test("sessions are named after the environment and the release", async () => {
  await restored(firstBackup);
  await using sql = new SQL(url, { max: 1 });
  await using _ = await postgresIn(url).read();
  const rows =
    await sql`SELECT application_name AS name FROM pg_stat_activity WHERE datname = current_database()`;
  expect(rows.map(({ name }: { name: string }) => name)).toContain(`petstore production ${version}`);
});
