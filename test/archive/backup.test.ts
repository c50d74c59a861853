import { Database } from "bun:sqlite";
import { beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { version } from "../../package.json";
import { createPet } from "../../trials/harness/api-client.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { cleanUpAfterAll, failure, InProcessCli, cliDirectory, stepsIn } from "../cli/cli.ts";
import { NO_DATABASE } from "../cli/command-lines.ts";
import { until } from "../timing.ts";
import { fillData } from "./sample-data.ts";

cleanUpAfterAll();

let cli: InProcessCli;
let backups: string;
beforeEach(() => {
  cli = new InProcessCli();
  backups = join(cliDirectory(), "backups");
});

const backUp = (...flags: string[]) => cli.run(["backup", backups, ...flags]);
const fill = () => fillData(cli.dataDir);
const allNames = () => readdirSync(backups).toSorted();
const names = () => allNames().filter((name) => !name.startsWith("."));

describe("petstore backup", () => {
  test("is one database that says what it is, and its checksum next to it, for their owner only", async () => {
    await fill();
    const { code, out } = await backUp();
    const path = join(backups, "production-2026-11-15T12-00-00Z.db");
    expect(code).toBe(0);
    expect(out).toStartWith(`Backed up 49 pets, 1 order and 2 keys to ${path} (0.`);
    expect(out).toEndWith(" MB) and verified the copy.\n");
    expect(names()).toEqual([basename(path), `${basename(path)}.sha256`]);
    for (const name of allNames()) expect(statSync(join(backups, name)).mode & 0o077).toBe(0);
    const { rows, problems } = inspectDatabase(path);
    expect(rows).toMatchObject({ pets: 49, orders: 1, api_keys: 2, key_secrets: 3, attempts: 51 });
    expect([problems, names()]).toEqual([[], [basename(path), `${basename(path)}.sha256`]]);
    using database = new Database(path, { readonly: true });
    expect(database.query("SELECT * FROM backup").all()).toEqual([
      { environment: "production", created_at: "2026-11-15T12:00:00.000Z", version },
    ]);
    // This is the format that sha256sum --check reads.
    const checksum = new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");
    expect(readFileSync(`${path}.sha256`, "utf8")).toBe(`${checksum}  ${basename(path)}\n`);
  });

  test("records its time for the metrics; a database that cannot be written to is a warning", async () => {
    await fill();
    const recorded = () => {
      using database = new Database(join(cli.dataDir, "production.db"));
      const sql = "SELECT value FROM server_settings WHERE name = 'last-backup'";
      return database.query<{ value: string }, []>(sql).get()?.value;
    };
    expect(await backUp()).toMatchObject({ code: 0, err: "" });
    expect(recorded()).toBe(String(Date.UTC(2026, 10, 15, 12)));
    cli.clock.advance(1_000);
    const database = new Database(join(cli.dataDir, "production.db"));
    database.run("DELETE FROM server_settings WHERE name = 'last-backup'");
    database.run("INSERT INTO server_settings VALUES ('other', '')");
    database.run(
      "CREATE UNIQUE INDEX only_other ON server_settings (name IS NULL) WHERE name = 'other' OR name = 'last-backup'",
    );
    database.close();
    const { code, out } = await backUp();
    const warning = "warning: the metrics do not show this backup: cannot write to the database";
    expect(out).toContain(`${warning} ${join(cli.dataDir, "production.db")}: `);
    expect(code).toBe(0);
    expect(names()).toHaveLength(4);
  });

  test("of a database that is a copied backup says what it is itself", async () => {
    await fill();
    const { path } = await cli.json<{ path: string }>("backup", backups);
    const other = new InProcessCli();
    copyFileSync(path, join(other.dataDir, "production.db"));
    other.clock.advance(1_000);
    const next = await other.json<{ path: string }>("backup", backups);
    using database = new Database(next.path, { readonly: true });
    expect(database.query("SELECT created_at FROM backup").all()).toEqual([
      { created_at: "2026-11-15T12:00:01.000Z" },
    ]);
  });

  test("shows its progress on standard error, and with --json only the result", async () => {
    await fill();
    const { code, progress } = await cli.runSlowly("backup", backups);
    expect(code).toBe(0);
    expect(stepsIn(progress)).toEqual(["copying", "checking", "computing the checksum"]);
    for (const step of ["copying", "computing the checksum"])
      expect(progress).toMatch(
        new RegExp(`^petstore: ${step}: 0\\.\\d MB(?:, .* MB/s)?, 100 % done, 0:00 left$`, "m"),
      );
    cli.clock.advance(1_000);
    const made = await cli.runSlowly("backup", backups, "--json");
    expect(made).toMatchObject({ code: 0, progress: "" });
    const path = join(backups, names()[2] ?? "");
    expect(JSON.parse(made.out)).toMatchObject({ path, removed: [], bytes: statSync(path).size });
  });

  test("--keep 2 removes the oldest backups of this environment, and no others", async () => {
    await fill();
    mkdirSync(join(backups, "production-notes"), { recursive: true });
    for (const name of ["staging-2020-01-01T00-00-00Z.db", "production-2020-01-01T00-00-00Z.db"])
      writeFileSync(join(backups, name), "");
    for (let day = 1; day <= 3; day++) {
      cli.clock.advance(86_400_000);
      expect((await backUp("--keep", "2")).code).toBe(0);
    }
    expect(names().filter((name) => !name.endsWith(".sha256"))).toEqual([
      "production-2026-11-17T12-00-00Z.db",
      "production-2026-11-18T12-00-00Z.db",
      "production-notes",
      "staging-2020-01-01T00-00-00Z.db",
    ]);
    expect(names()).toHaveLength(6);
  });

  test("its name has a later time than that of the last one, also after the clock was set back", async () => {
    await fill();
    mkdirSync(backups);
    writeFileSync(join(backups, "production-2026-11-15T12-59-59Z.db"), "");
    for (let i = 0; i < 2; i++) expect((await backUp()).code).toBe(0);
    cli.clock.advance(-86_400_000);
    expect((await backUp("--keep", "2")).code).toBe(0);
    expect(names().filter((name) => !name.endsWith(".sha256"))).toEqual([
      "production-2026-11-15T13-00-01Z.db",
      "production-2026-11-15T13-00-02Z.db",
    ]);
  });

  test("after the database began anew, --keep keeps the new backups, and restore takes the newest", async () => {
    await fillData(cli.dataDir, 300);
    for (let i = 0; i < 3; i++) await backUp("--keep", "3");
    rmSync(cli.dataDir, { recursive: true });
    await fillData(cli.dataDir, 6);
    for (let i = 0; i < 3; i++) await backUp("--keep", "3");
    const plan = await cli.json<{ backup: string; rows: { pets: number } }>(
      "restore",
      backups,
      "--replace",
      "--dry-run",
    );
    expect([basename(plan.backup), plan.rows.pets]).toEqual(["production-2026-11-15T12-00-05Z.db", 5]);
    const kept = names().filter((name) => name.endsWith(".db"));
    expect(kept.map((name) => inspectDatabase(join(backups, name)).rows["pets"])).toEqual([5, 5, 5]);
  });

  test("of two runs at the same time one fails, and what an interrupted one left is removed", async () => {
    await fill();
    mkdirSync(backups);
    const left = [
      ".production.partial",
      ".production.partial-journal",
      "production-2026-11-14T12-00-00Z.db.sha256",
    ];
    for (const name of left) writeFileSync(join(backups, name), "something");
    const lock = acquireLock(join(backups, ".production.lock"));
    await expect(backUp()).rejects.toThrow(`another backup of production to ${backups} is running`);
    lock?.release();
    expect((await backUp()).code).toBe(0);
    const name = "production-2026-11-15T12-00-00Z.db";
    expect(allNames()).toEqual([".production.lock", name, `${name}.sha256`]);
  });

  test.each([
    ["trigger", "CREATE TRIGGER x AFTER INSERT ON audit BEGIN DELETE FROM orders; END"],
    ["view", "CREATE VIEW x AS SELECT 1"],
    ["table", "CREATE TABLE x (id)"],
    ["virtual table", "CREATE VIRTUAL TABLE x USING fts5(y)"],
  ])("a database with a %s that no release has made is a failure, also for doctor", async (kind, sql) => {
    await fill();
    const database = new Database(join(cli.dataDir, "production.db"));
    database.run("CREATE INDEX of_an_administrator ON pets (name)");
    expect((await backUp()).code).toBe(0);
    database.run(sql);
    database.close();
    const has = `it has the ${kind} x, which no release of Petstore has made`;
    const before = allNames();
    await expect(backUp()).rejects.toThrow(`the database is not sound: ${has}`);
    expect(allNames()).toEqual(before);
    expect((await cli.run("doctor")).out).toContain(has);
  });

  test("a database that is damaged is a failure, and no backup appears", async () => {
    await fill();
    const database = join(cli.dataDir, "production.db");
    const bytes = readFileSync(database);
    bytes.fill(0xff, 8 * 4_096, 12 * 4_096);
    writeFileSync(database, bytes);
    await expect(backUp()).rejects.toThrow(/damaged|malformed/);
    expect(allNames()).toEqual([".production.lock"]);
  });

  test("no database is a failure, and makes no directory", async () => {
    rmSync(cli.dataDir, { recursive: true });
    expect(await backUp()).toEqual(failure(expect.stringMatching(NO_DATABASE)));
    expect(existsSync(backups)).toBeFalse();
  });

  test("while a server writes: the copy is sound and has every pet that was acknowledged before", async () => {
    const { url, secret = "", stop } = await cli.serve();
    await cli.run("plans update free --per-minute 100000 --per-day 100000");
    const stopped = new AbortController();
    let created = 0;
    const writing = (async () => {
      for (; !stopped.signal.aborted; created++) await createPet(url, secret);
    })();
    await until(() => created >= 20, 5_000);
    const before = created;
    const { code, err } = await backUp();
    const after = created;
    stopped.abort();
    await writing;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    await stop();
    const { rows, problems } = inspectDatabase(join(backups, names()[0] ?? ""));
    expect(problems).toEqual([]);
    expect(rows["pets"]).toBeWithin(before, after + 2);
  });
});
