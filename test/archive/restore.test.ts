import { Database } from "bun:sqlite";
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { restoreBackup } from "../../src/archive/restore.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/open-sqlite.ts";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { cleanUpAfterAll, EXECUTABLE, failure, InProcessCli, cliDirectory, stepsIn } from "../cli/cli.ts";
import { dataIn } from "../data-directory.ts";
import { BY, hash } from "../key-store-arguments.ts";
import { fillData, NOW } from "./sample-data.ts";

cleanUpAfterAll();

let cli: InProcessCli;
let backups: string;
let backup: string;
const run = (...argv: string[]) => cli.run(argv);
const restore = (from: string, ...flags: string[]) => run("restore", from, ...flags);
const restoreError = (from: string, ...flags: string[]) => cli.err(["restore", from, ...flags]);
const inData = (name: string) => join(cli.dataDir, name);
const inspect = (name = "production.db") => inspectDatabase(inData(name));
const open = () => openSqlite(inData("production.db"));
const removeData = () => rmSync(cli.dataDir, { recursive: true });

/** What a restore prints that succeeds. */
async function restored(from: string, ...flags: string[]): Promise<string> {
  const { code, out } = await restore(from, ...flags);
  expect(code).toBe(0);
  return out;
}

/** Writes the checksum of a backup that has changed. */
function writeChecksum(path: string): void {
  const checksum = new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");
  writeFileSync(`${path}.sha256`, `${checksum}  ${basename(path)}\n`);
}

/** Has data and a backup of it, which each test gets a copy of. */
const original = cliDirectory();

beforeAll(async () => {
  cli = new InProcessCli();
  await fillData(cli.dataDir);
  await run("backup", join(original, "backups"));
  renameSync(cli.dataDir, join(original, "data"));
});

beforeEach(() => {
  cli = new InProcessCli();
  cpSync(original, dirname(cli.dataDir), { recursive: true });
  backups = join(dirname(cli.dataDir), "backups");
  backup = join(backups, "production-2026-11-15T12-00-00Z.db");
});

/** Time passes: key 1 is revoked, key 2 is rolled, key 3 and more pets are created. */
async function changeData(): Promise<void> {
  cli.clock.advance(3_600_000);
  await run("keys", "revoke", "1");
  await run("keys", "rotate", "2", "--overlap", "0");
  await run("keys", "create", "--name", "third", "--plan", "free");
  const { clientStore, close } = open();
  for (let i = 0; i < 10; i++) await clientStore.createPet({ name: "later", categoryId: 1n }, NOW);
  await close();
}

async function nextPetId(): Promise<bigint | undefined> {
  const { clientStore, close } = open();
  const created = await clientStore.createPet({ name: "next", categoryId: 1n }, NOW);
  await close();
  return "id" in created ? created.id : undefined;
}

describe("the newest backup of a directory", () => {
  /** Makes another backup, with more data. Time passes by `ms`, which may be negative. */
  async function laterBackup(ms: number, ...argv: string[]): Promise<string> {
    cli.clock.advance(ms);
    await run("keys", "create", "--name", "later", "--plan", "free");
    return (await cli.json<{ path: string }>("backup", backups, ...argv)).path;
  }
  const planned = async (...argv: string[]) =>
    cli.json<{ backup: string; skipped: string[] }>("restore", backups, "--replace", "--dry-run", ...argv);

  test("is the one with the latest time in its name, whatever the clock was", async () => {
    await laterBackup(500 * 86_400_000);
    const newest = await laterBackup(-400 * 86_400_000);
    expect((await planned()).backup).toBe(newest);
  });

  test.each([
    [
      "its checksum is missing",
      (newest: string) => rmSync(`${newest}.sha256`),
      "is incomplete: NAME.sha256 is missing",
    ],
    [
      "it is damaged",
      (newest: string) => truncateSync(newest, 4_096),
      "is damaged: the checksum of NAME is wrong",
    ],
  ])("is not passed over if %s, unless --allow-older says so", async (_name, damage, problem) => {
    const newest = await laterBackup(3_600_000);
    damage(newest);
    const message = `the backup ${newest} ${problem.replace("NAME", basename(newest))}`;
    expect(await restore(backups, "--replace")).toEqual(
      failure(`${message}; with --allow-older, the newest one that is complete is restored`),
    );
    const out = await restored(backups, "--replace", "--allow-older");
    expect(out).toContain(`  Backup        ${backup}\n`);
    expect(out).toContain(`warning: ${message}\n`);
  });

  test("an incomplete one that is older does not matter", async () => {
    const newest = await laterBackup(3_600_000);
    rmSync(`${backup}.sha256`);
    expect(await planned()).toMatchObject({ backup: newest, skipped: [] });
  });
});

describe("petstore restore", () => {
  test("puts the database into an empty data directory", async () => {
    const { rows } = inspect();
    removeData();
    const out = await restored(backup);
    expect(out).toContain("Contents      49 pets, 1 order and 2 keys\n");
    expect(out).toContain("Migration     none is needed\n");
    expect(out).toContain("Present data  none\n");
    expect(out).toContain(
      "warning: which keys and operators were revoked, restricted or rotated after 2026-11-15T12:00:00.000Z is not known here",
    );
    expect(out).toEndWith("Restored. Start the server with petstore serve.\n");
    // The time of the backup was recorded after it.
    const [audit, settings] = [Number(rows["audit"]) + 1, Number(rows["server_settings"]) - 1];
    expect(inspect()).toMatchObject({ rows: { ...rows, audit, server_settings: settings }, problems: [] });
    expect(readdirSync(cli.dataDir).toSorted()).toEqual([
      "production-limits.db",
      "production.db",
      "production.lock",
    ]);
  });

  test("shows its progress on standard error", async () => {
    const { progress } = await cli.runSlowly("restore", backup, "--replace");
    expect(stepsIn(progress)).toEqual(["copying", "checking the backup"]);
    expect(progress).toMatch(/^petstore: copying: 0\.\d MB(?:, .* MB\/s)?, 100 % done, 0:00 left$/m);
  });

  test("has one entry in the audit trail of the restored database, with the backup and what was replaced", async () => {
    await changeData();
    await restored(backups, "--replace");
    const [latest, ...earlier] = await cli.json<{ id: number }[]>("audit");
    expect(latest).toMatchObject({
      at: "2026-11-15T13:00:00.000Z",
      actor: { kind: "command line", name: "ann" },
      action: "data.restored",
      target: null,
      before: null,
      after: {
        backup: "production-2026-11-15T12-00-00Z.db",
        backupCreatedAt: "2026-11-15T12:00:00.000Z",
        replaced: "production-replaced-2026-11-15T13-00-00Z.db",
      },
    });
    // Identifiers of entries that are lost are not assigned again: eight before the backup, three after it.
    expect([latest?.id, earlier.length]).toEqual([12, 8]);
  });

  test("operators are restored, sessions, codes and what only running servers use are not; those changed since are named", async () => {
    const by = { actor: { kind: "console" }, at: NOW } as const;
    const secret = (text: string) => ({ hash: hash(text.length), hint: text });
    const create = (stores: SqliteStores, name: string) =>
      stores.operators.createOperator({ name, role: "admin" }, secret(name), by);
    const before = open();
    const names = ["a", "bb", "ccc", "ffffff", "ggggggg"];
    for (const name of names) await create(before, name);
    const session = { cookieHash: hash(101), secretHash: hash(102), operatorId: 1 };
    const signedIn = { ...by, action: "admin.signed-in" } as const;
    const times = { createdAt: NOW, endsAt: NOW + 1 };
    const { hash: tokenHash } = secret("a");
    await before.operators.createSession({ ...session, tokenHash, ...times }, signedIn);
    await before.operators.createCode({ codeHash: hash(103), operatorId: 1, endsAt: NOW + 1 }, NOW);
    const report = "5f0e-report-of-a-server-9d3c";
    await before.serverReports.report("one", report);
    await before.questions.ask([{ id: "1", operation: "getSettings", query: report }]);
    await before.close();
    cli.clock.advance(1_000);
    expect((await run("backup", backups)).code).toBe(0);
    const newest = join(backups, "production-2026-11-15T12-00-01Z.db");
    const bytes = readFileSync(newest, "latin1");
    expect([report, hash(101), hash(103)].filter((text) => bytes.includes(text))).toEqual([]);

    const later = open();
    await later.operators.rotateOperator(3, secret("dddd"), by);
    await later.operators.revokeOperator(4, by);
    await later.operators.updateOperator(5, { role: "viewer" }, by);
    await later.operators.updateOperator(6, { expiresAt: NOW + 86_400_000 }, by);
    await create(later, "eeeee");
    await later.close();
    const out = await restored(backups, "--replace");
    expect(out).toContain(
      "operators who were revoked or rotated, or got another role or an earlier expiry since, have their earlier token, role and expiry: bb; ccc; ffffff; ggggggg\n",
    );
    const after = open();
    const restoredNames = (await after.operators.listOperators()).map(({ name }) => name);
    expect(restoredNames).toEqual(["ann", ...names]);
    const { sessions, codes } = await after.operators.readAccess();
    expect([sessions.size, codes.size]).toEqual([0, 0]);
    expect(await after.storedValues.readValues()).not.toContainKey("server-secret");
    await after.close();
  });

  test("files belong to the owner of the data directory, also if root restores them", async () => {
    removeData();
    mkdirSync(cli.dataDir, { mode: 0o700 });
    const nobody = 65_534;
    const owner = process.getuid?.() === 0 ? nobody : (process.getuid?.() ?? nobody);
    chownSync(cli.dataDir, owner, process.getgid?.() ?? nobody);
    await restored(backup);
    for (const name of readdirSync(cli.dataDir)) expect(statSync(inData(name)).uid).toBe(owner);
  });

  test("overwrites nothing: --replace gives the present database another name, and warns of the keys that changed since", async () => {
    await changeData();
    const message = `${cli.dataDir} (production) has data, and a restore overwrites nothing; with --replace, that gets another name first`;
    expect(await restore(backup)).toEqual(failure(message));
    expect(inspect().rows["pets"]).toBe(59);
    const out = await restored(backups, "--replace");
    const replaced = inData("production-replaced-2026-11-15T13-00-00Z.db");
    for (const text of [
      `gets the name ${replaced}`,
      "warning: keys revoked since the backup are valid again: run petstore keys revoke 1\n",
      "warning: secrets replaced since are valid again, and the new ones are not: run petstore keys rotate 2 --overlap 0\n",
      "warning: keys created since are lost: 3\n",
    ])
      expect(out).toContain(text);
    expect(inspect().rows["pets"]).toBe(49);
    expect(inspectDatabase(replaced).rows["pets"]).toBe(59);
    // 50 pets before the backup, 10 after it: none of their identifiers is assigned again.
    expect(await nextPetId()).toBe(61n);
  });

  test("a backup of a release before 1.3 is rejected, and the message says which release restores it", async () => {
    const earlier = join(dirname(backups), "earlier");
    mkdirSync(join(earlier, "production-2026-11-15T110000.000Z"), { recursive: true });
    const [directory] = readdirSync(earlier).map((name) => join(earlier, name));
    writeFileSync(join(directory ?? "", "SHA256SUMS"), "");
    for (const from of [earlier, directory ?? ""])
      expect(await restoreError(from, "--replace")).toContain(
        `${from} has a backup of a release before 1.3; restore it with petstore 1.3, and upgrade then`,
      );
    // Release 1.3.0 has made it before it migrated the tables.
    const database = new Database(backup);
    database.run("UPDATE schema_migrations SET version = version - 20");
    database.close();
    writeChecksum(backup);
    await expect(restore(backup, "--replace")).rejects.toThrow(
      "the tables are of a release before 1.3.0; petstore 1.3.0 migrates them, and restores backups of them",
    );
    expect(inspect().rows["pets"]).toBe(49);
  });

  test("and a backup, name the file of quotas if it is damaged, and change nothing", async () => {
    writeFileSync(inData("production-limits.db"), "not a database ".repeat(1_000));
    const before = inspect();
    const error = /production-limits\.db.*; counts start anew when that file is moved away$/;
    await expect(restore(backup, "--replace")).rejects.toThrow(error);
    await expect(run("backup", backups)).rejects.toThrow(error);
    expect(inspect()).toEqual(before);
    renameSync(inData("production-limits.db"), inData("moved"));
    await restored(backup, "--replace");
  });

  test("of a release before 2.0, which has no quotas, leaves those of today", async () => {
    {
      using database = new Database(backup);
      database.run("DROP TABLE quotas");
    }
    writeChecksum(backup);
    const before = readFileSync(inData("production-limits.db"));
    await restored(backup, "--replace");
    expect(readFileSync(inData("production-limits.db")).equals(before)).toBeTrue();
    removeData();
    await restored(backup);
    expect(existsSync(inData("production-limits.db"))).toBeFalse();
  });

  test("without present databases, a later backup beside it tells which keys changed since", async () => {
    await changeData();
    await run("backup", backups);
    removeData();
    const out = await restored(backup);
    expect(out).toContain("keys revoked since the backup are valid again: run petstore keys revoke 1");
    expect(await nextPetId()).toBe(61n);
  });

  /** Changes the backup as somebody can who knows how its checksum is made. */
  function prepare(...statements: readonly string[]): void {
    const database = new Database(backup);
    for (const statement of statements) database.run(statement);
    database.close();
    writeChecksum(backup);
  }

  test("a file without its description, or with another file's checksum, is no backup", async () => {
    writeFileSync(
      `${backup}.sha256`,
      readFileSync(`${backup}.sha256`, "utf8").replace(basename(backup), "other.db"),
    );
    await expect(restore(backup, "--replace")).rejects.toThrow(
      `the checksum of ${basename(backup)} is wrong`,
    );
    prepare("UPDATE backup SET environment = 'other'");
    await expect(restore(backup, "--replace")).rejects.toThrow(`${backup} does not describe a backup`);
    prepare("DROP TABLE backup");
    await expect(restore(backup, "--replace")).rejects.toThrow(`${backup} does not describe a backup`);
  });

  test("a database without one of its tables or columns is not sound for a backup, a restore and doctor", async () => {
    for (const [statement, problem] of [
      ["ALTER TABLE plans DROP COLUMN per_day", "its table plans is not the one that Petstore has made"],
      ["DROP TABLE plans", "it lacks the table plans"],
    ] as const) {
      for (const path of [backup, inData("production.db")]) {
        using database = new Database(path);
        database.run(statement);
      }
      writeChecksum(backup);
      await expect(restore(backup, "--replace")).rejects.toThrow(
        `the backup ${backup} is not sound: ${problem}`,
      );
      await expect(run("backup", backups)).rejects.toThrow(`the database is not sound: ${problem}`);
      expect((await run("doctor", "--port", "0")).out).toContain(problem);
    }
  });

  /** What a process leaves that was killed after a write, in the present database too. */
  function logOfPresent() {
    using writer = new Database(inData("production.db"));
    writer.run("UPDATE pets SET name = 'in the log'");
    return readFileSync(inData("production.db-wal"));
  }

  test("a damaged database is replaced, and kept", async () => {
    await changeData();
    const log = logOfPresent();
    writeFileSync(inData("production.db"), "no database");
    writeFileSync(inData("production.db-wal"), log);
    expect(await restored(backup, "--replace")).toContain("is not known here");
    const replaced = "production-replaced-2026-11-15T13-00-00Z.db";
    const kept = [replaced, `${replaced}-wal`].map((name) => readFileSync(inData(name), "latin1"));
    expect(kept).toEqual(["no database", log.toString("latin1")]);
    expect(existsSync(inData("production.db-wal"))).toBeFalse();
    expect(inspect()).toMatchObject({ problems: [], rows: { pets: 49 } });
    await restored(backup, "--replace");
    expect(inspect("production-replaced-2026-11-15T13-00-01Z.db").rows["pets"]).toBe(49);
  });

  test("the log of a database that was moved away is not applied to the restored one, and stays", async () => {
    const before = inspect();
    const log = logOfPresent();
    expect(log.length).toBeGreaterThan(0);
    rmSync(inData("production.db"));
    writeFileSync(inData("production.db-wal"), log);
    await restored(backup);
    expect(inspect()).toMatchObject({ problems: [], rows: { pets: before.rows["pets"] } });
    using present = new Database(inData("production.db"));
    expect(present.query("SELECT 1 FROM pets WHERE name = 'in the log'").all()).toEqual([]);
    const kept = readdirSync(cli.dataDir).filter((name) => /^production\.db\.before-.*-wal$/.test(name));
    expect(kept.map((name) => readFileSync(inData(name)))).toEqual([log]);
  });

  test("what an interrupted one left is replaced: a copy, and another name of the present database", async () => {
    await changeData();
    for (const suffix of ["", "-wal", "-journal"])
      writeFileSync(inData(`production.db.restored${suffix}`), "left");
    linkSync(inData("production.db"), inData("production-replaced-2026-11-15T12-30-00Z.db"));
    await restored(backup, "--replace");
    expect(readdirSync(cli.dataDir).toSorted()).toEqual([
      "production-limits.db",
      "production-replaced-2026-11-15T13-00-00Z.db",
      "production.db",
      "production.lock",
    ]);
    expect(inspect("production-replaced-2026-11-15T13-00-00Z.db").rows["pets"]).toBe(59);
  });

  test("while a command such as an import uses the databases, it fails and changes nothing", async () => {
    const { operatorPetStore, close } = open();
    await operatorPetStore.getPet(1n);
    // The file of the lock stays when a server ends.
    acquireLock(inData("production.lock"))?.release();
    const { code, out, err } = await cli.runSlowly("restore", backup, "--replace");
    await close();
    const message = `another command uses the database in ${cli.dataDir} (production); run this one again when it is done`;
    expect([code, out, err]).toEqual([1, "", message]);
    // Or one that begins after the plan was shown.
    const before = readdirSync(cli.dataDir).toSorted();
    let other: SqliteStores | undefined;
    const request = { location: dataIn(cli.dataDir), from: backup, replace: true, allowOlder: false };
    const restoring = restoreBackup({ ...request, by: BY, onProgress() {} }, async () => {
      other = open();
      await other.operatorPetStore.getPet(1n);
    });
    await expect(restoring).rejects.toThrow(message);
    await other?.close();
    // A command leaves the log of a database that another process has open.
    const isLog = (name: string) => /-(?:wal|shm)$/.test(name);
    expect(
      readdirSync(cli.dataDir)
        .filter((name) => !isLog(name))
        .toSorted(),
    ).toEqual(before);
    await restored(backup, "--replace");
  });

  test("a command that writes after the plan was shown waits, and is told that it wrote nothing", async () => {
    const request = { location: dataIn(cli.dataDir), from: backup, replace: true, allowOlder: false };
    await restoreBackup({ ...request, by: BY, onProgress() {} }, async () => {
      const create = ["pets", "add", "--name", "Late", "--category", "1", "--data", cli.dataDir];
      const child = Bun.spawn([EXECUTABLE, ...create], { stderr: "pipe" });
      expect(await child.stderr.text()).toContain("database is locked");
      expect(await child.exited).toBe(1);
    });
    expect(existsSync(inData("production.db"))).toBeTrue();
  });

  test("is done although nobody reads its output", async () => {
    removeData();
    const line = '{ "$0" restore "$1" --data "$2"; echo "status $?" >&2; } | true';
    const child = Bun.spawn(["sh", "-c", line, EXECUTABLE, backup, cli.dataDir], { stderr: "pipe" });
    expect(await child.stderr.text()).toEndWith("status 0\n");
    expect(existsSync(inData("production.db"))).toBeTrue();
  });

  test("--dry-run shows the plan, with --json for programs, also where databases exist, and changes nothing", async () => {
    await changeData();
    const before = readdirSync(cli.dataDir).toSorted();
    const out = await restored(backups, "--dry-run");
    expect(out).toMatch(/Present data {2}gets the name \S+-replaced-\S+, which needs --replace\n/);
    const plan = await restore(backups, "--replace", "--dry-run", "--json");
    expect(JSON.parse(plan.out.slice(0, plan.out.lastIndexOf("}") + 1))).toMatchObject({
      backup,
      createdAt: "2026-11-15T12:00:00.000Z",
      keysRevokedSince: [1],
      keysRotatedSince: [2],
      keysCreatedSince: [3],
      isDryRun: true,
    });
    expect(readdirSync(cli.dataDir).toSorted()).toEqual(before);
  });

  test("a running server, another environment, no backup and a damaged backup are failures", async () => {
    const lock = acquireLock(inData("production.lock"));
    expect(await restoreError(backup, "--replace")).toBe(
      `a server is running on ${cli.dataDir} (production); stop it first`,
    );
    lock?.release();
    expect(await restoreError(backup, "--env", "staging")).toBe(
      `the backup ${backup} is of production, not of staging; use --env production`,
    );
    const empty = cliDirectory();
    for (const path of [empty, join(empty, "missing")])
      expect(await restoreError(path, "--replace")).toBe(`there is no backup of production in ${path}`);
    writeFileSync(backup, "not a database");
    await expect(restore(backup, "--replace")).rejects.toThrow(
      `the backup ${backup} is damaged: the checksum of ${basename(backup)} is wrong`,
    );
    expect(await restoreError(backups, "--replace", "--allow-older")).toBe(
      `the backup ${backup} is damaged: the checksum of ${basename(backup)} is wrong`,
    );
    expect(inspect().rows["pets"]).toBe(49);
  });
});
