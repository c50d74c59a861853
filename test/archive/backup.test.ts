import { Database } from "bun:sqlite";
import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPet } from "../../trials/harness/api-client.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { cleanUpAfterAll, failure, InProcessCli, cliDirectory } from "../cli/cli.ts";
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
  test("copies both databases with a description and checksums, for their owner only", async () => {
    await fill();
    const { code, out } = await backUp();
    const path = join(backups, "production-2026-11-15T120000.000Z");
    expect(code).toBe(0);
    expect(out).toStartWith(`Backed up 49 pets, 1 order and 2 keys to ${path} (0.`);
    expect(out).toEndWith(" MB) and verified the copy.\n");
    expect(readdirSync(path).toSorted()).toEqual([
      "SHA256SUMS",
      "backup.json",
      "production-limits.db",
      "production.db",
    ]);
    for (const name of ["", ...readdirSync(path)]) expect(statSync(join(path, name)).mode & 0o077).toBe(0);
    expect(JSON.parse(readFileSync(join(path, "backup.json"), "utf8"))).toMatchObject({
      environment: "production",
      createdAt: "2026-11-15T12:00:00.000Z",
      files: [
        { name: "production-limits.db", rows: { standings: 3 } },
        { name: "production.db", rows: { pets: 49, orders: 1, api_keys: 2, key_secrets: 3, attempts: 51 } },
      ],
    });
    // As sha256sum --check reads them.
    const checksums = ["production-limits.db", "production.db", "backup.json"].map((name) => {
      const checksum = new Bun.CryptoHasher("sha256").update(readFileSync(join(path, name)));
      return `${checksum.digest("hex")}  ${name}\n`;
    });
    expect(readFileSync(join(path, "SHA256SUMS"), "utf8")).toBe(checksums.join(""));
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
    using database = new Database(join(cli.dataDir, "production.db"));
    database.run(
      "CREATE TRIGGER full BEFORE UPDATE ON server_settings BEGIN SELECT RAISE(ABORT, 'full'); END",
    );
    const { code, out } = await backUp();
    const warning = "warning: the metrics do not show this backup: cannot write to the database";
    expect(out).toContain(`${warning} ${join(cli.dataDir, "production.db")}: full\n`);
    expect(code).toBe(0);
    expect(names()).toHaveLength(2);
  });

  test("shows its progress on standard error, and with --json only the result", async () => {
    await fill();
    const { code, progress } = await cli.runSlowly("backup", backups);
    expect(code).toBe(0);
    const steps = [...progress.matchAll(/^petstore: (\w[\w ]*)/gm)].map(([, step]) => step);
    expect([...new Set(steps)]).toEqual(["copying", "checking", "computing checksums"]);
    expect(progress).toMatch(
      /^petstore: computing checksums: 0\.\d MB, [\d.]+ MB\/s, \d+ % done, \d+:\d\d left$/m,
    );
    cli.clock.advance(1_000);
    const made = await cli.runSlowly("backup", backups, "--json");
    expect(made).toMatchObject({ code: 0, progress: "" });
    expect(JSON.parse(made.out)).toMatchObject({
      path: join(backups, names()[1] ?? ""),
      removed: [],
      bytes: expect.any(Number),
    });
  });

  test("--keep 2 removes the oldest backups of this environment, and no others", async () => {
    await fill();
    mkdirSync(join(backups, "staging-2020-01-01T000000.000Z"), { recursive: true });
    mkdirSync(join(backups, "production-notes"));
    for (let day = 1; day <= 3; day++) {
      cli.clock.advance(86_400_000);
      expect((await backUp("--keep", "2")).code).toBe(0);
    }
    expect(names()).toEqual([
      "production-2026-11-17T120000.000Z",
      "production-2026-11-18T120000.000Z",
      "production-notes",
      "staging-2020-01-01T000000.000Z",
    ]);
  });

  test("of two runs at the same time one fails, and what an interrupted one left is removed", async () => {
    await fill();
    mkdirSync(join(backups, ".production-2026-11-14T120000.000Z.partial"), { recursive: true });
    const lock = acquireLock(join(backups, ".production.lock"));
    await expect(backUp()).rejects.toThrow(`another backup of production to ${backups} is running`);
    lock?.release();
    expect((await backUp()).code).toBe(0);
    expect(allNames()).toEqual([".production.lock", "production-2026-11-15T120000.000Z"]);
  });

  test("a database that is damaged is a failure, and no backup appears", async () => {
    await fill();
    const database = join(cli.dataDir, "production.db");
    const bytes = readFileSync(database);
    bytes.fill(0xff, 8 * 4_096, 12 * 4_096);
    writeFileSync(database, bytes);
    await expect(backUp()).rejects.toThrow(/damaged|malformed/);
    expect(names()).toEqual([]);
  });

  test("no database and PostgreSQL are failures that say what to do", async () => {
    const database = join(cli.dataDir, "production.db");
    expect(await backUp()).toEqual(failure(`${database} does not exist; see --data and --env`));
    expect((await backUp("--database-url", "postgres://u:s3cret@db/pets")).err).toBe(
      "the data is in PostgreSQL at db/pets, and this command is for SQLite; use deploy/postgres/backup and pg_restore, see docs/backup.md",
    );
    expect(existsSync(backups)).toBeFalse();
  });

  test("while a server writes: the copy is sound and has every pet that was acknowledged before", async () => {
    const { url, secret = "", stop } = await cli.serve(["--free-limits", "100000/100000"]);
    const stopped = new AbortController();
    let created = 0;
    const writing = (async () => {
      for (; !stopped.signal.aborted; created++) await createPet(url, secret);
    })();
    await until(() => created >= 20);
    const before = created;
    const { code, err } = await backUp();
    const after = created;
    stopped.abort();
    await writing;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    await stop();
    const { rows, problems } = inspectDatabase(join(backups, names()[0] ?? "", "production.db"));
    expect(problems).toEqual([]);
    expect(rows["pets"]).toBeWithin(before, after + 2);
  });
});
