import { describe, expect, spyOn, test } from "bun:test";
import { Database } from "bun:sqlite";
import { version as release } from "../../package.json";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { openForReads } from "../../src/store/sqlite/database-file.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import type { Migration, TableUse } from "../../src/store/sql/migrations.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sql/migration-steps.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { fixtureData } from "../engines/upgrade/previous-release.ts";
import { BY } from "../key-store-arguments.ts";
import { openStoreDatabase, temporaryDatabase, whileLocked } from "./sqlite-database.ts";
import { disposableDirectory } from "../disposable-directory.ts";

const first: Migration = {
  version: 1,
  name: "first",
  worksWith: "1.0.0",
  sql: "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1)",
};
const second: Migration = {
  version: 2,
  name: "second",
  worksWith: release,
  sql: "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1",
};
const broken: Migration = {
  version: 3,
  name: "broken",
  worksWith: "1.0.0",
  sql: "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1)",
};

const open = (path: string, migrations: readonly Migration[], use: TableUse = BY) =>
  openDatabase(path, { migrations, use, synchronous: "FULL", cacheKiB: 2048, busyTimeoutMs: 40 });

describe("migrations", () => {
  test("an older database gets the migrations that it lacks, and keeps its data", () => {
    using directory = disposableDirectory();
    const older = open(directory.path("a.db"), [first]);
    older.run("UPDATE a SET x = 41");
    older.close();
    for (const use of ["existing", "create"] as const)
      expect(() => open(directory.path("a.db"), [first, second], use)).toThrow("its tables have version 1");
    const newer = open(directory.path("a.db"), [first, second]);
    expect(newer.value("SELECT y FROM a")).toBe(42n);
    newer.close();
    const again = open(directory.path("a.db"), [first, second]);
    expect(
      again.value(
        "SELECT group_concat(version || ' ' || name, ', ' ORDER BY version) FROM schema_migrations",
      ),
    ).toBe("1 first, 2 second");
    again.close();
  });

  test("an older database is rejected in one line and not changed, unless somebody migrates it, who is in the audit trail", async () => {
    using directory = disposableDirectory();
    open(directory.path("a.db"), SQLITE_MIGRATIONS.slice(0, -1)).close();
    using database = new Database(directory.path("a.db"));
    const before = database.serialize();
    const [version, latest] = SQLITE_MIGRATIONS.slice(-2).map((step) => step.version);
    for (const use of ["existing", "create"] as const) {
      expect(() => openSqlite(directory.path("a.db"), { use })).toThrow(
        `its tables have version ${version}, and petstore ${release} needs version ${latest}; petstore serve migrates them when it starts, and so does petstore migrate; nothing was changed`,
      );
    }
    expect(database.serialize()).toEqual(before);
    const migrated: unknown[] = [];
    const use = { ...BY, onMigrated: (entry: unknown) => void migrated.push(entry) };
    const stores = openSqlite(directory.path("a.db"), { use });
    const after = { schemaVersion: latest, release };
    expect((await stores.audit.listAudit({ limit: 10 })).items).toMatchObject([
      { ...BY, action: "database.migrated", before: { schemaVersion: version }, after },
    ]);
    expect(migrated).toEqual([...(await stores.audit.listAudit({ limit: 10 })).items]);
    await stores.close();
    await openSqlite(directory.path("a.db"), { use }).close();
    expect(migrated).toHaveLength(1);
  });

  test("new tables are no migration, and nothing is made by who opens existing ones", async () => {
    using directory = disposableDirectory();
    expect(() => openSqlite(directory.path("a.db"), { use: "existing" })).toThrow("cannot open the database");
    expect(existsSync(directory.path("a.db"))).toBe(false);
    writeFileSync(directory.path("a.db"), "");
    expect(() => openSqlite(directory.path("a.db"), { use: "existing" })).toThrow("it has no tables");
    const onMigrated = () => expect.unreachable();
    const stores = openSqlite(directory.path("a.db"), { use: { ...BY, onMigrated } });
    expect((await stores.audit.listAudit({ limit: 10 })).items).toEqual([]);
    await stores.close();
  });

  test("a step is refused while a server of another process runs that cannot use its tables", async () => {
    using directory = disposableDirectory();
    const next: Migration = {
      version: 900,
      name: "next",
      worksWith: "999.0.0",
      sql: "CREATE TABLE next (x INTEGER)",
    };
    const migrations = [...SQLITE_MIGRATIONS, next];
    const stores = openSqlite(directory.path("a.db"));
    const refused = () =>
      expect(() => open(directory.path("a.db"), migrations, elsewhere)).toThrow(
        "step 900 (next) leaves tables that need petstore 999.0.0 or newer, and a server of an earlier release is running; stop it first, or run petstore migrate --force; nothing was changed",
      );
    const elsewhere = { ...BY, isServedElsewhere: true };
    await stores.serverReports.report("a", JSON.stringify({ version: "999.0.0" }));
    await stores.serverReports.report("b", JSON.stringify({ version: "998.0.0" }));
    refused();
    // It has not reported for long, by a clock that was ahead.
    using database = new Database(directory.path("a.db"));
    database.run("UPDATE servers SET reported_at = reported_at + 86400000 WHERE id = 'b'");
    await stores.serverReports.report("c", "{}");
    open(directory.path("a.db"), migrations, elsewhere).close();
    await stores.serverReports.report("b", JSON.stringify({ version: "999.0.0" }));
    const further = [...migrations, { ...next, version: 901, worksWith: "999.1.0", sql: "DROP TABLE next" }];
    expect(() => open(directory.path("a.db"), further, elsewhere)).toThrow("step 901");
    open(directory.path("a.db"), further, { ...elsewhere, isForced: true }).close();
    await stores.close();
  });

  test("a newer database opens if its steps say that this release can run on it, and is not migrated", () => {
    using directory = disposableDirectory();
    open(directory.path("a.db"), [first, second]).close();
    const older = open(directory.path("a.db"), [first]);
    expect(older.value("SELECT y FROM a")).toBe(2n);
    expect(older.value("SELECT max(version) FROM schema_migrations")).toBe(2n);
    older.close();
  });

  test("otherwise it is rejected in one line, which names the release that it needs, and not changed", () => {
    using directory = disposableDirectory();
    const third: Migration = { ...second, version: 3, worksWith: "999.10.0", sql: "DROP TABLE a" };
    open(directory.path("a.db"), [first, second, third]).close();
    using database = new Database(directory.path("a.db"));
    const before = database.serialize();
    const message = `cannot open the database ${directory.path("a.db")}: the tables need petstore 999.10.0 or newer; this is petstore ${release}`;
    expect(() => open(directory.path("a.db"), [first, second])).toThrow(message);
    expect(() => open(directory.path("a.db"), [first])).toThrow(message);
    expect(database.serialize()).toEqual(before);
    database.run(
      "INSERT INTO schema_migrations (version, name, oldest_release) VALUES (4, 'fourth', '999.9.0')",
    );
    expect(() => open(directory.path("a.db"), [first])).toThrow(message);
    database.run("INSERT INTO schema_migrations (version, name) VALUES (5, 'without a release')");
    expect(() => open(directory.path("a.db"), [first])).toThrow(
      `the tables need a newer petstore; this is petstore ${release}`,
    );
  });

  test("a migration that fails is rolled back, and those before it remain", () => {
    using directory = disposableDirectory();
    expect(() => open(directory.path("a.db"), [first, second, broken])).toThrow("no such table: nowhere");
    const connection = open(directory.path("a.db"), [first, second]);
    expect(connection.value("SELECT count(*) FROM sqlite_schema WHERE name = 'b'")).toBe(0n);
    connection.close();
  });

  test("tables of a release before 1.3.0 are rejected in one line, also by who migrates, and not changed", () => {
    using directory = disposableDirectory();
    const path = directory.path("a.db");
    open(path, SQLITE_MIGRATIONS).close();
    using database = new Database(path);
    database.run("UPDATE schema_migrations SET version = version - 20");
    const before = database.serialize();
    const message = `${path}: the tables are of a release before 1.3.0; petstore 1.3.0 migrates them, and restores backups of them`;
    for (const use of ["existing", "create", BY] as const)
      expect(() => openSqlite(path, { use })).toThrow(message);
    expect(() => inspectDatabase(path)).toThrow(message);
    expect(database.serialize()).toEqual(before);
  });

  test("new tables are the same as those of release 1.3.0 after the migration, and have no row more", async () => {
    const schemaOf = (path: string) => {
      using database = new Database(path);
      const rows = database.query(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name",
      );
      return rows.all().map((row) => JSON.stringify(row).replaceAll(/(?:--.*?\\n|\\n|\s)+/g, " "));
    };
    const earlier = join(fixtureData("1.3.0"), "production.db");
    await openSqlite(earlier, { use: BY }).close();
    using made = temporaryDatabase();
    const withoutSpaces = (path: string) =>
      schemaOf(path).map((sql) => sql.replaceAll(/\s*([(),])\s*/g, "$1"));
    expect(withoutSpaces(made.path)).toEqual(withoutSpaces(earlier));
    const filled = made.connection
      .all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'")
      .filter(({ name }) => made.connection.value(`SELECT count(*) FROM ${name}`) !== 0n);
    expect(filled.map(({ name }) => name).toSorted()).toEqual([
      "ban_rules",
      "key_revision",
      "pet_revision",
      "plans",
      "schema_migrations",
    ]);
    expect(inspectDatabase(earlier).problems).toEqual([]);
  });

  test("every table of the store is STRICT", () => {
    using directory = disposableDirectory();
    const connection = open(directory.path("a.db"), SQLITE_MIGRATIONS);
    expect(
      connection.value(
        "SELECT group_concat(name) FROM pragma_table_list WHERE NOT strict AND name NOT LIKE 'sqlite_%'",
      ),
    ).toBeNull();
    connection.close();
  });
});

/** The error of a statement that cannot get the lock of another process. */
async function errorWhileLocked({
  connection,
  path,
}: ReturnType<typeof temporaryDatabase>): Promise<unknown> {
  let error: unknown;
  await whileLocked(path, () => {
    try {
      connection.run("BEGIN IMMEDIATE");
    } catch (thrown) {
      error = thrown;
    }
  });
  return error;
}

describe("opening a database", () => {
  test("durability, memory and the size of the log are configured", () => {
    using directory = disposableDirectory();
    const connection = open(directory.path("a.db"), []);
    const settings = {
      journal_mode: "wal",
      synchronous: 2n,
      foreign_keys: 1n,
      cache_size: -2048n,
      mmap_size: 0n,
      busy_timeout: 40n,
      journal_size_limit: 64n * 1024n * 1024n,
    };
    const actual = Object.keys(settings).map((name) => [name, connection.value(`PRAGMA ${name}`)]);
    expect(Object.fromEntries(actual)).toEqual(settings);
    connection.close();
  });

  test("whoever opens one has the durability, the cache and the wait for locks that suit the work", async () => {
    using directory = disposableDirectory();
    const path = directory.path("a.db");
    const all = { foreign_keys: "ON", mmap_size: "0", journal_size_limit: `${64 * 1024 * 1024}` };
    const whole = { synchronous: "NORMAL", cache_size: "-16384", busy_timeout: "5000", ...all };
    const commands = sqliteTables(path);
    const cases: [open: () => unknown, settings: object][] = [
      [() => openSqlite(path).close(), { ...whole, synchronous: "FULL", busy_timeout: "5" }],
      [() => openQuotaStore(`${path}-limits`).close(), { ...whole, cache_size: "-4096", busy_timeout: "0" }],
      [async () => (await commands.read())[Symbol.asyncDispose](), whole],
      [async () => (await commands.create())[Symbol.asyncDispose](), whole],
      [async () => (await commands.share())[Symbol.asyncDispose](), { ...whole, busy_timeout: "0" }],
      [() => inspectDatabase(path), { cache_size: "-16384", busy_timeout: "5000" }],
      [() => openForReads(path).close(), { cache_size: "-8192", busy_timeout: "1000" }],
    ];
    for (const [open, settings] of cases) {
      using exec = spyOn(Connection.prototype, "exec");
      await open();
      const pragmas = exec.mock.calls.map(([sql]) => /^PRAGMA (\w+) = (.+)$/.exec(sql)).filter(Boolean);
      const { application_id: _, ...given } = Object.fromEntries(
        pragmas.map((found) => [found?.[1], found?.[2]]),
      );
      expect(given).toEqual(settings);
    }
  });

  test("a file that is no database is rejected, and not changed", async () => {
    using directory = disposableDirectory();
    const text = "Dear diary, ".repeat(1000);
    writeFileSync(directory.path("a.db"), text);
    expect(() => openSqlite(directory.path("a.db"))).toThrow(
      /^cannot open the database .*a\.db: file is not a database$/,
    );
    expect(await Bun.file(directory.path("a.db")).text()).toBe(text);
  });

  test("a database of another program is rejected in one line, and not changed", async () => {
    using directory = disposableDirectory();
    const foreign = {
      "with tables": "CREATE TABLE notes (x)",
      "with an application_id": "PRAGMA application_id = 7",
      "with both": "CREATE TABLE notes (x); PRAGMA application_id = 7",
      "with its own table schema_migrations":
        "CREATE TABLE schema_migrations (version varchar NOT NULL PRIMARY KEY)",
    };
    for (const [name, sql] of Object.entries(foreign)) {
      const path = directory.path(`${name}.db`);
      const other = new Database(path);
      other.run(sql);
      other.close(true);
      const before = await Bun.file(path).bytes();
      expect(() => openSqlite(path)).toThrow(
        `cannot open the database ${path}: it is the database of another program; move it away or choose another directory`,
      );
      expect(await Bun.file(path).bytes()).toEqual(before);
    }
  });

  test("the application_id is set, and a database from before it was set opens as well", async () => {
    using directory = disposableDirectory();
    await openSqlite(directory.path("a.db")).close();
    const applicationId = (sql: string) => {
      using database = new Database(directory.path("a.db"));
      return database.prepare<{ application_id: number }, []>(sql).get()?.application_id;
    };
    expect(applicationId("PRAGMA application_id")).toBe(0x50657453);
    applicationId("PRAGMA application_id = 0");
    const { clientStore, close } = openSqlite(directory.path("a.db"));
    expect(await clientStore.createPet({ name: "Rex", categoryId: 1n }, 0)).toMatchObject({ id: 1n });
    await close();
  });

  test("a database that is up to date opens while another process writes", async () => {
    using db = temporaryDatabase();
    await whileLocked(db.path, () => openSqlite(db.path).close());
  });

  test("a database whose columns somebody has altered does not open, and its inspection names the table", async () => {
    using db = temporaryDatabase();
    db.connection.exec("ALTER TABLE pets RENAME COLUMN name TO title");
    expect(() => openSqlite(db.path)).toThrow(`cannot open the database ${db.path}: no such column: name`);
    const problem = "its table pets is not the one that Petstore has made";
    expect(inspectDatabase(db.path).problems).toEqual([problem]);
  });

  test("an inspection counts the rows that refer to missing ones", () => {
    using db = temporaryDatabase();
    db.connection.exec("PRAGMA foreign_keys = OFF");
    const order = "INSERT INTO orders (pet_id, status, created_at) VALUES (9, 'cancelled', 0)";
    for (const rows of ["1 row of orders refers", "2 rows of orders refer"]) {
      db.connection.exec(order);
      expect(inspectDatabase(db.path).problems).toEqual([`${rows} to missing rows of pets`]);
    }
  });

  test("an empty database has version 0", () => {
    using directory = disposableDirectory();
    open(directory.path("a.db"), []).close();
    expect(inspectDatabase(directory.path("a.db"))).toMatchObject({
      schemaVersion: 0,
      steps: [],
      problems: [],
    });
  });

  test("a version of SQLite that can corrupt the file is rejected", () => {
    using directory = disposableDirectory();
    using order = spyOn(Bun.semver, "order").mockReturnValue(-1);
    expect(() => open(directory.path("a.db"), [])).toThrow("is too old; 3.51.3 or newer is required");
    order.mockReturnValue(0);
    open(directory.path("a.db"), []).close();
  });

  test("the write-ahead log is turned on again for 5 s while other processes do so at the same time", async () => {
    using db = temporaryDatabase();
    const busy = await errorWhileLocked(db);
    const { value } = Connection.prototype;
    let failures: unknown[] = [];
    using _ = spyOn(Connection.prototype, "value").mockImplementation(function (this: Connection, ...call) {
      const failure = call[0] === "PRAGMA journal_mode = WAL" ? failures.pop() : undefined;
      if (failure !== undefined) throw failure;
      return value.apply(this, call);
    });
    let now = 7_000;
    using clock = spyOn(scheduler, "now").mockImplementation(() => (now += 1_000));
    using pauses = spyOn(Bun, "sleepSync");
    for (const [given, error, times] of [
      [[], undefined, 1],
      [Array.from({ length: 5 }, () => busy), undefined, 6],
      [Array.from({ length: 6 }, () => busy), "database is locked", 7],
      [[new Error("another")], "another", 1],
    ] as const) {
      failures = [...given];
      clock.mockClear();
      pauses.mockClear();
      const opening = () => openStoreDatabase(db.path).close();
      if (error === undefined) opening();
      else expect(opening).toThrow(error);
      expect(clock).toHaveBeenCalledTimes(times);
      expect(pauses.mock.calls).toEqual(given.slice(0, 5).flatMap((each) => (each === busy ? [[5]] : [])));
    }
  });

  test("a missing directory is named in the error", () => {
    using directory = disposableDirectory();
    expect(() => openSqlite(directory.path("no/a.db"))).toThrow(
      /^cannot open the database .*no\/a\.db: unable to open/,
    );
  });

  test("closing the store removes the write-ahead log, unless it is or was that of a server", async () => {
    using directory = disposableDirectory();
    const watched = { to: directory.path("rescued.db"), onRescue() {}, onFailure() {} };
    for (const [name, open, keeps] of [
      ["a.db", () => openSqlite(directory.path("a.db")), false],
      ["a.db", () => openSqlite(directory.path("a.db"), { rescue: watched }), true],
      ["a.db", () => openSqlite(directory.path("a.db")), true],
      ["limits.db", () => openQuotaStore(directory.path("limits.db")), false],
      ["limits.db", () => openQuotaStore(directory.path("limits.db"), watched), true],
    ] as const) {
      const opened = open();
      if ("clientStore" in opened) {
        await opened.clientStore.createPet({ name: "Rex", categoryId: 1n }, 0);
        await opened.operatorPetStore.listPets({ limit: 1 });
      } else opened.save([]);
      expect(existsSync(directory.path(`${name}-wal`))).toBe(true);
      await opened.close();
      expect(existsSync(directory.path(`${name}-wal`))).toBe(keeps);
    }
  });
});
