import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test, setDefaultTimeout } from "bun:test";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/store.ts";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { cleanUp, EXECUTABLE, InProcessCli, temporaryDirectory } from "../cli/cli.ts";
import { hash } from "../key-store-arguments.ts";
import { fillData, NOW } from "./sample-data.ts";

// A busy machine takes long.
setDefaultTimeout(60_000);

afterAll(cleanUp);

let cli: InProcessCli;
let backups: string;
let backup: string;
const run = (...argv: string[]) => cli.run(argv);
const inData = (name: string) => join(cli.dataDir, name);

/** Has data and a backup of it, which each test gets a copy of. */
const original = temporaryDirectory();

beforeAll(async () => {
  cli = new InProcessCli();
  await fillData({ environment: "production", dataDir: cli.dataDir });
  await run("backup", join(original, "backups"));
  renameSync(cli.dataDir, join(original, "data"));
});

beforeEach(() => {
  cli = new InProcessCli();
  cpSync(original, dirname(cli.dataDir), { recursive: true });
  backups = join(dirname(cli.dataDir), "backups");
  backup = join(backups, "production-2026-11-15T120000.000Z");
});

/** Time passes: key 1 is revoked, key 2 is rolled, key 3 and more pets are created. */
async function changeData(): Promise<void> {
  cli.clock.advance(3_600_000);
  await run("keys", "revoke", "1");
  await run("keys", "roll", "2", "--overlap", "0");
  await run("keys", "create", "--name", "third", "--plan", "free");
  const { store, close } = openSqlite(inData("production.db"));
  for (let i = 0; i < 10; i++) await store.createPet({ name: "later", categoryId: 1n }, NOW);
  await close();
}

function removeData(): void {
  rmSync(cli.dataDir, { recursive: true });
}

async function nextPetId(): Promise<bigint | undefined> {
  const { store, close } = openSqlite(inData("production.db"));
  const created = await store.createPet({ name: "next", categoryId: 1n }, NOW);
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

  test("is the one with the latest contents, whatever the clock was", async () => {
    await laterBackup(500 * 86_400_000);
    const newest = await laterBackup(-400 * 86_400_000);
    expect((await planned()).backup).toBe(newest);
  });

  test("--keep removes one of the future when it is the oldest", async () => {
    const ofTheFuture = await laterBackup(500 * 86_400_000, "--keep", "2");
    await laterBackup(-499 * 86_400_000, "--keep", "2");
    expect(existsSync(ofTheFuture)).toBeTrue();
    await laterBackup(1_000, "--keep", "2");
    expect([existsSync(ofTheFuture), existsSync(backup)]).toEqual([false, false]);
  });

  test.each([
    ["its checksums are missing", "SHA256SUMS", "is incomplete: SHA256SUMS is missing"],
    ["its database is missing", "production.db", "is incomplete: production.db is missing"],
    ["a file is damaged", undefined, "is damaged: the checksum of backup.json is wrong; use another backup"],
  ])("is not passed over if %s, unless --allow-older says so", async (_name, missing, problem) => {
    const newest = await laterBackup(3_600_000);
    if (missing) rmSync(join(newest, missing));
    else writeFileSync(join(newest, "backup.json"), "{}");
    const message = `the backup ${newest} ${problem}`;
    expect(await run("restore", backups, "--replace")).toMatchObject({
      code: 1,
      out: "",
      err: `${message}; with --allow-older, the newest one that is complete is restored`,
    });
    const { out, code } = await run("restore", backups, "--replace", "--allow-older");
    expect(code).toBe(0);
    expect(out).toContain(`  Backup             ${backup}\n`);
    expect(out).toContain(`warning: ${message}\n`);
  });

  test("an incomplete one that is older does not matter", async () => {
    const newest = await laterBackup(3_600_000);
    rmSync(join(backup, "SHA256SUMS"));
    expect(await planned()).toMatchObject({ backup: newest, skipped: [] });
  });
});

describe("petstore restore", () => {
  test("puts the databases into an empty data directory", async () => {
    const { rows } = inspectDatabase(inData("production.db"));
    removeData();
    const { code, out } = await run("restore", backup);
    expect(code).toBe(0);
    expect(out).toContain("Contents           49 pets, 1 order and 2 keys\n");
    expect(out).toContain("Present databases  none\n");
    expect(out).toContain(
      "warning: which keys and operators were revoked or rotated after 2026-11-15T12:00:00.000Z is not known here",
    );
    expect(out).toEndWith("Restored. Start the server with petstore serve.\n");
    expect(inspectDatabase(inData("production.db"))).toMatchObject({
      rows: { ...rows, audit: Number(rows["audit"]) + 1 },
      problems: [],
    });
    expect(inspectDatabase(inData("production-limits.db")).rows).toEqual({ standings: 3 });
    expect(readdirSync(cli.dataDir).toSorted()).toEqual([
      "production-limits.db",
      "production.db",
      "production.lock",
    ]);
  });

  test("shows its progress on standard error", async () => {
    const { progress } = await cli.runSlowly("restore", backup, "--replace");
    const steps = [...progress.matchAll(/^petstore: (\w[\w ]*)/gm)].map(([, step]) => step);
    expect([...new Set(steps)]).toEqual([
      "comparing checksums",
      "checking the backup",
      "copying",
      "checking the copy",
    ]);
  });

  test("has one entry in the audit trail of the restored database, with the backup and what was replaced", async () => {
    await changeData();
    expect((await run("restore", backups, "--replace")).code).toBe(0);
    const [latest, ...earlier] = await cli.json<{ id: number }[]>("audit");
    expect(latest).toMatchObject({
      at: "2026-11-15T13:00:00.000Z",
      actor: { kind: "command line", name: "ann" },
      action: "data.restored",
      target: null,
      before: null,
      after: {
        backup: "production-2026-11-15T120000.000Z",
        backupCreatedAt: "2026-11-15T12:00:00.000Z",
        replaced: "production-replaced-2026-11-15T130000.000Z",
      },
    });
    // Identifiers of entries that are lost are not assigned again: six before the backup, three after it.
    expect([latest?.id, earlier.length]).toEqual([10, 6]);
  });

  test("a backup without an audit trail gets no entry, and a warning says so", async () => {
    removeData();
    mkdirSync(cli.dataDir, { mode: 0o700 });
    using database = new Database(inData("production.db"));
    database.run("CREATE TABLE pets (id INTEGER PRIMARY KEY)");
    database.run("CREATE TABLE schema_migrations (version INTEGER, name TEXT, applied_at TEXT)");
    database.close();
    cli.clock.advance(1_000);
    expect((await run("backup", backups)).code).toBe(0);
    const { code, out } = await run("restore", backups, "--replace");
    expect(code).toBe(0);
    expect(out).toContain(
      "warning: the backup is of a release without an audit trail, so this restore has no entry there\n",
    );
  });

  test("operators are restored, sessions, codes and the servers' secret are not; those revoked or rotated since are named", async () => {
    const by = { actor: { kind: "console" }, at: NOW } as const;
    const secret = (text: string) => ({ hash: hash(text.length), hint: text });
    const create = (stores: SqliteStores, name: string) =>
      stores.operators.createOperator({ name, role: "admin" }, secret(name), by);
    const before = openSqlite(inData("production.db"));
    for (const name of ["a", "bb", "ccc"]) await create(before, name);
    const session = { cookieHash: hash(101), secretHash: hash(102), operatorId: 1, tokenCheck: null };
    const signedIn = { ...by, action: "admin.signed-in" } as const;
    await before.operators.createSession({ ...session, createdAt: NOW, endsAt: NOW + 1 }, signedIn);
    await before.operators.createCode({ codeHash: hash(103), operatorId: 1, endsAt: NOW + 1 }, NOW);
    const serverSecret = await before.settings.saveIfMissing("server-secret", "5f0e-secret-of-servers-9d3c");
    await before.close();
    cli.clock.advance(1_000);
    expect((await run("backup", backups)).code).toBe(0);
    const newest = join(backups, "production-2026-11-15T120001.000Z", "production.db");
    const bytes = readFileSync(newest, "latin1");
    expect([serverSecret, hash(101), hash(103)].filter((text) => bytes.includes(text))).toEqual([]);

    const later = openSqlite(inData("production.db"));
    await later.operators.rotateOperator(3, secret("dddd"), by);
    await later.operators.revokeOperator(4, by);
    await create(later, "eeeee");
    await later.close();
    const { code, out } = await run("restore", backups, "--replace");
    expect(code).toBe(0);
    expect(out).toContain("operators that were revoked or rotated since are valid again: bb; ccc\n");
    const restored = openSqlite(inData("production.db"));
    expect((await restored.operators.listOperators()).map(({ name }) => name)).toEqual([
      "ann",
      "a",
      "bb",
      "ccc",
    ]);
    const { sessions, codes } = await restored.operators.readAccess();
    expect([sessions.size, codes.size]).toEqual([0, 0]);
    expect(await restored.settings.readSettings()).not.toContainKey("server-secret");
    await restored.close();
  });

  test("files belong to the owner of the data directory, also if root restores them", async () => {
    removeData();
    mkdirSync(cli.dataDir, { mode: 0o700 });
    const nobody = 65_534;
    const owner = process.getuid?.() === 0 ? nobody : (process.getuid?.() ?? nobody);
    chownSync(cli.dataDir, owner, process.getgid?.() ?? nobody);
    expect((await run("restore", backup)).code).toBe(0);
    for (const name of readdirSync(cli.dataDir)) expect(statSync(inData(name)).uid).toBe(owner);
  });

  test("overwrites nothing: --replace moves the present databases away, and warns of the keys that changed since", async () => {
    await changeData();
    expect(await run("restore", backup)).toEqual({
      code: 1,
      out: "",
      err: `${inData("production.db")} exists, and a restore overwrites nothing; with --replace, the present databases are moved to another directory first`,
    });
    expect(inspectDatabase(inData("production.db")).rows["pets"]).toBe(59);
    const { code, out } = await run("restore", backups, "--replace");
    expect(code).toBe(0);
    const replaced = inData("production-replaced-2026-11-15T130000.000Z");
    expect(out).toContain(`move to ${replaced}`);
    expect(out).toContain(
      "warning: keys revoked since the backup are valid again: run petstore keys revoke 1\n",
    );
    expect(out).toContain(
      "warning: secrets replaced since are valid again, and the new ones are not: run petstore keys rotate 2 --overlap 0\n",
    );
    expect(out).toContain("warning: keys created since are lost: 3\n");
    expect(inspectDatabase(inData("production.db")).rows["pets"]).toBe(49);
    expect(inspectDatabase(join(replaced, "production.db")).rows["pets"]).toBe(59);
    // 50 pets before the backup, 10 after it: none of their identifiers is assigned again.
    expect(await nextPetId()).toBe(61n);
  });

  test("without present databases, a later backup beside it tells which keys changed since", async () => {
    await changeData();
    await run("backup", backups);
    removeData();
    const { out } = await run("restore", backup);
    expect(out).toContain("keys revoked since the backup are valid again: run petstore keys revoke 1");
    expect(await nextPetId()).toBe(61n);
  });

  test("a backup without the checksum of one of its files, or with a broken description, is damaged", async () => {
    const checksums = join(backup, "SHA256SUMS");
    const text = readFileSync(checksums, "utf8");
    writeFileSync(checksums, "");
    await expect(run("restore", backup, "--replace")).rejects.toThrow(
      `the backup ${backup} is damaged: SHA256SUMS has no checksum of backup.json; use another backup`,
    );
    writeFileSync(checksums, text.replace(/.* production\.db\n/, ""));
    await expect(run("restore", backup, "--replace")).rejects.toThrow("has no checksum of production.db");
    writeFileSync(join(backup, "backup.json"), "{");
    const checksum = new Bun.CryptoHasher("sha256").update("{").digest("hex");
    writeFileSync(checksums, text.replace(/\w+(?= {2}backup\.json)/, checksum));
    await expect(run("restore", backup, "--replace")).rejects.toThrow(
      "backup.json does not describe a backup",
    );
  });

  test("while a command such as an import uses the databases, it fails and changes nothing", async () => {
    const { store, close } = openSqlite(inData("production.db"));
    await store.getPet(1n);
    // As a server leaves it.
    acquireLock(inData("production.lock"))?.release();
    const { code, err } = await cli.runSlowly("restore", backup, "--replace");
    await close();
    expect({ code, err }).toEqual({
      code: 1,
      err: `another command uses the databases in ${cli.dataDir} (production); run this one again when it is done`,
    });
    expect((await run("restore", backup, "--replace")).code).toBe(0);
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
    const { code, out } = await run("restore", backups, "--dry-run");
    expect(code).toBe(0);
    expect(out).toMatch(/Present databases {2}move to \S+-replaced-\S+, which needs --replace\n/);
    const plan = await run("restore", backups, "--replace", "--dry-run", "--json");
    expect(JSON.parse(plan.out.slice(0, plan.out.lastIndexOf("}") + 1))).toMatchObject({
      backup,
      createdAt: "2026-11-15T12:00:00.000Z",
      keysRevokedSince: [1],
      keysRolledSince: [2],
      keysCreatedSince: [3],
      isDryRun: true,
    });
    expect(readdirSync(cli.dataDir).toSorted()).toEqual(before);
  });

  test("a running server, another environment, no backup and a damaged backup are failures", async () => {
    const lock = acquireLock(inData("production.lock"));
    expect((await run("restore", backup, "--replace")).err).toBe(
      `a server is running on ${cli.dataDir} (production); stop it first`,
    );
    lock?.release();
    expect((await run("restore", backup, "--env", "staging")).err).toBe(
      `the backup ${backup} is of production, not of staging; use --env production`,
    );
    const empty = temporaryDirectory();
    expect((await run("restore", empty)).err).toBe(`there is no backup of production in ${empty}`);
    writeFileSync(join(backup, "production.db"), "not a database");
    await expect(run("restore", backup, "--replace")).rejects.toThrow(
      `the backup ${backup} is damaged: the checksum of production.db is wrong; use another backup`,
    );
    expect(inspectDatabase(inData("production.db")).rows["pets"]).toBe(49);
  });
});

describe("a restore that was interrupted", () => {
  /** As after a kill: everything is staged, and the present databases are partly moved away. */
  async function interrupt(): Promise<string> {
    await changeData();
    const replaced = "production-replaced-2026-11-15T130000.000Z";
    mkdirSync(inData("production-restore"));
    for (const name of ["production.db", "production-limits.db", "backup.json"]) {
      await Bun.write(inData(`production-restore/${name}`), Bun.file(join(backup, name)));
    }
    writeFileSync(inData("production-restore/replaced-directory"), `${replaced}\n`);
    mkdirSync(inData(replaced));
    renameSync(inData("production.db"), inData(`${replaced}/production.db`));
    return replaced;
  }

  test("keeps every command from using the databases until it is finished", async () => {
    await interrupt();
    for (const line of ["keys create --name x --plan free", "keys list", "pets list", "usage", "audit"]) {
      await expect(run(...line.split(" "))).rejects.toThrow(
        `a restore to ${cli.dataDir} (production) was interrupted; run the same petstore restore command again`,
      );
    }
    expect(existsSync(inData("production.db"))).toBeFalse();
  });

  test("is finished by the same command, without --replace too", async () => {
    const replaced = await interrupt();
    const { code, out } = await run("restore", backup);
    expect(code).toBe(0);
    expect(out).toStartWith("Continues the restore that was interrupted:\n");
    expect(out).toContain("run petstore keys revoke 1");
    expect(inspectDatabase(inData("production.db")).rows["pets"]).toBe(49);
    expect(inspectDatabase(inData(`${replaced}/production.db`)).rows["pets"]).toBe(59);
    expect(existsSync(inData(`${replaced}/production-limits.db`))).toBeTrue();
    expect(existsSync(inData("production-restore"))).toBeFalse();
    expect((await run("keys", "list")).code).toBe(0);
  });

  test("after its copies were staged has one audit entry when it is finished", async () => {
    await changeData();
    const obstacle = inData("production-replaced-2026-11-15T130000.000Z/production.db");
    mkdirSync(join(obstacle, "not empty"), { recursive: true });
    await expect(run("restore", backup, "--replace")).rejects.toThrow();
    rmSync(obstacle, { recursive: true });
    cli.clock.advance(60_000);
    expect((await run("restore", backup)).out).toStartWith("Continues the restore that was interrupted:\n");
    expect(await cli.json("audit", "--action", "data.restored")).toMatchObject([
      { at: "2026-11-15T13:00:00.000Z" },
    ]);
  });

  test("is not mixed with a restore of another backup", async () => {
    cli.clock.advance(60_000);
    await run("backup", backups);
    await interrupt();
    expect((await run("restore", backups)).err).toBe(
      "a restore of the backup of 2026-11-15T12:00:00.000Z was interrupted; finish it first, with petstore restore and that backup",
    );
  });
});
