import { Database } from "bun:sqlite";
import { beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { version } from "../../package.json";
import { cleanUpAfterAll, cliDirectory, InProcessCli } from "../cli/cli.ts";
import { fillData } from "./sample-data.ts";

cleanUpAfterAll();

let cli: InProcessCli;
beforeEach(async () => {
  cli = new InProcessCli();
  await fillData(cli.dataDir);
});

const REJECTION = `the tables need petstore 999.1.0 or newer; this is petstore ${version}`;

/** Does what a later release does to one of the databases. */
function migrate(name: string, oldestRelease: string): void {
  using database = new Database(join(cli.dataDir, name));
  const table = name === "production.db" ? "pets" : "standings";
  database.run(`ALTER TABLE ${table} ADD COLUMN later TEXT`);
  database.run(`UPDATE ${table} SET later = 'kept'`);
  database.run("CREATE TABLE IF NOT EXISTS later_things (id INTEGER)");
  const columns = "version INTEGER PRIMARY KEY, name TEXT NOT NULL, oldest_release TEXT";
  database.run(`CREATE TABLE IF NOT EXISTS schema_migrations (${columns})`);
  const step = "INSERT INTO schema_migrations (version, name, oldest_release) VALUES (900, 'later', ?)";
  database.run(step, [oldestRelease]);
}

test("a backup of newer tables on which this release can run is made and restored with all that they have", async () => {
  for (const name of ["production.db", "production-limits.db"]) migrate(name, "1.0.0");
  const backups = cliDirectory();
  expect((await cli.run(["backup", backups])).code).toBe(0);
  const other = new InProcessCli({ hasData: false });
  expect((await other.run(["restore", backups])).code).toBe(0);
  using database = new Database(join(other.dataDir, "production.db"));
  const kept = database.query<{ kept: number; pets: number }, []>(
    "SELECT count(later) AS kept, count(*) AS pets FROM pets",
  );
  expect(kept.get()).toEqual({ kept: 49, pets: 49 });
  expect((await other.run("pets list")).code).toBe(0);
});

test("a backup that needs a newer release is made, and its restore names that release", async () => {
  migrate("production.db", "999.1.0");
  const backups = cliDirectory();
  const { path } = await cli.json<{ path: string }>("backup", backups);
  const other = new InProcessCli({ hasData: false });
  expect(await other.err(["restore", backups])).toBe(`the backup ${path} cannot be used: ${REJECTION}`);
  expect(await other.err(["restore", backups, "--allow-older"])).toContain(REJECTION);
});

test.each(["production.db", "production-limits.db"])(
  "doctor names the release that %s needs",
  async (name) => {
    migrate(name, "999.1.0");
    const doctor = await cli.run(["doctor", "--port", "0"]);
    expect(doctor.out).toContain(REJECTION);
    expect(doctor.code).toBe(1);
  },
);
