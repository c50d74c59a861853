import { Database } from "bun:sqlite";
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chownSync,
  cpSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { verifyBackup } from "../../src/archive/backup-files.ts";
import type { WorkProgress } from "../../src/archive/progress.ts";
import { restoreBackup } from "../../src/archive/restore.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { cleanUpAfterAll, cliDirectory, InProcessCli } from "../cli/cli.ts";
import { dataIn } from "../data-directory.ts";
import { BY } from "../key-store-arguments.ts";
import { fillData } from "./sample-data.ts";

cleanUpAfterAll();

let cli: InProcessCli;
let backup: string;
/** Has data and a backup of it, which each test gets a copy of. */
const original = cliDirectory();

beforeAll(async () => {
  cli = new InProcessCli();
  await fillData(cli.dataDir);
  await cli.run(["backup", join(original, "backups")]);
  renameSync(cli.dataDir, join(original, "data"));
});

beforeEach(() => {
  cli = new InProcessCli();
  cpSync(original, dirname(cli.dataDir), { recursive: true });
  backup = join(dirname(cli.dataDir), "backups", "production-2026-11-15T12-00-00Z.db");
});

const restore = () => cli.run(["restore", backup, "--replace"]);
const inData = () => join(cli.dataDir, "production.db");

/** A statement, or a text of the schema and another one that is at most as long. */
type Step = string | readonly [from: string, to: string];

/** Changes the backup as somebody can who knows how its checksum is made. */
function prepare(...steps: readonly Step[]): void {
  for (const step of steps) {
    if (typeof step === "string") {
      using database = new Database(backup);
      database.run(step);
      continue;
    }
    const [from, to] = step;
    const bytes = readFileSync(backup, "latin1");
    expect([bytes.includes(from), to.length <= from.length]).toEqual([true, true]);
    writeFileSync(backup, bytes.replaceAll(from, to.padEnd(from.length)), "latin1");
  }
  const checksum = new Bun.CryptoHasher("sha256").update(readFileSync(backup)).digest("hex");
  writeFileSync(`${backup}.sha256`, `${checksum}  ${basename(backup)}\n`);
}

const NEWER = "INSERT INTO schema_migrations (version, name, oldest_release) VALUES (900, '', '1.0.0')";
// Every row takes a gigabyte.
const COSTLY = "randomblob(999999999)";
const MAKE_OPERATOR = "INSERT INTO operators (name, role, created_at) VALUES ('eve', 'admin', 0)";

test.each<[name: string, steps: readonly Step[], problem: string]>([
  [
    "trigger, which would make an operator of the entry of the restore",
    [`CREATE TRIGGER x AFTER INSERT ON audit BEGIN ${MAKE_OPERATOR}; END`],
    "it has the trigger x, which no release of Petstore has made",
  ],
  ["view", ["CREATE VIEW x AS SELECT 1"], "it has the view x, which"],
  [
    "table of quotas",
    ["ALTER TABLE quotas ADD COLUMN x INTEGER AS (hex(key_id))"],
    "its table quotas is not the one that",
  ],
  ["virtual table", ["CREATE VIRTUAL TABLE x USING fts5(y)"], "it has the virtual table x, which"],
  ["table", ["CREATE TABLE x (y)"], "it has the table x, which"],
  ["default", [["DEFAULT 'write'", "DEFAULT 'wrote'"]], "its table api_keys is not the one that"],
  ["constraint", [["length(name) BETWEEN 1 AND 1024", COSTLY]], "its table pets is not the one that"],
  ["reference", [["REFERENCES pets (id)", ""]], "its table orders is not the one that"],
  ["unique index", ["DROP INDEX operators_by_name"], "it lacks the index operators_by_name"],
  [
    "index of that name",
    ["DROP INDEX operators_by_name", "CREATE INDEX operators_by_name ON operators (name)"],
    "its index operators_by_name is not the one",
  ],
  ["index with a function", ["CREATE INDEX x ON pets (hex(name))"], "it has the index x, which"],
  ["table of steps", [["strftime('%Y-%m-%dT%H:%M:%fZ')", COSTLY]], "its table schema_migrations is not"],
  [
    "table of a newer release, with a constraint",
    [NEWER, "CREATE TABLE x (y CHECK (length(y) < 123456789012))", ["length(y) < 123456789012", COSTLY]],
    "it has the table x, which",
  ],
  [
    "generated column of a newer release",
    [NEWER, "ALTER TABLE api_keys ADD COLUMN x TEXT AS (hex(name))"],
    "its table api_keys is not the one",
  ],
  [
    "default of a newer release",
    [NEWER, ["DEFAULT 'write'", "DEFAULT 'wrote'"]],
    "its column api_keys.access is not that of any release of Petstore",
  ],
])("a prepared backup with another %s is rejected before anything of it runs", async (_, steps, problem) => {
  prepare(...steps);
  const before = inspectDatabase(inData());
  await expect(restore()).rejects.toThrow(`the backup ${backup} is not sound: ${problem}`);
  expect(inspectDatabase(inData())).toEqual(before);
});

describe("a backup whose directory belongs to another user, who replaces it meanwhile", () => {
  const SECRET = "what only this user may read";
  /** Restores, and calls `onStep` with each step. Returns the owners that the copy had during each. */
  async function restoring(onStep: (step: string) => void): Promise<Record<string, number[]>> {
    if (process.getuid?.() === 0) chownSync(cli.dataDir, 65_534, 65_534);
    const copy = `${inData()}.restored`;
    const owners: Record<string, number[]> = {};
    const onProgress = ({ step = "" }: WorkProgress) => {
      onStep(step);
      const stats = existsSync(copy) ? statSync(copy) : undefined;
      if (stats) (owners[step] ??= []).push(stats.uid);
      if (stats) expect(readFileSync(copy, "latin1")).not.toContain(SECRET);
    };
    const location = dataIn(cli.dataDir);
    const from = dirname(backup);
    const request = { location, from, replace: true, allowOlder: false, by: BY, onProgress };
    await restoreBackup(request, async () => {});
    return owners;
  }
  const secret = join(cliDirectory(), "secret");
  writeFileSync(secret, SECRET);
  const replaceBackup = () => {
    rmSync(backup, { force: true });
    symlinkSync(secret, backup);
  };

  test.each(["copying", "checking the backup"])(
    "while it is at %s: what was verified is restored, and is the other user's only then",
    async (when) => {
      const owners = await restoring((step) => step === when && replaceBackup());
      expect(inspectDatabase(inData()).rows["pets"]).toBe(49);
      const [self, other] = [process.getuid?.() ?? 0, statSync(cli.dataDir).uid];
      expect(new Set(owners["copying"])).toEqual(new Set([self]));
      expect(new Set(owners["checking the backup"])).toEqual(new Set([other]));
    },
  );

  test("before: a link is not followed", async () => {
    replaceBackup();
    await expect(restoring(() => {})).rejects.toThrow(
      `${backup}: it is a symbolic link; only its directory may be one`,
    );
  });

  test("with what has another checksum: that is never the other user's", async () => {
    const bytes = readFileSync(backup);
    bytes[bytes.length - 1] = 1 + (bytes.at(-1) ?? 0);
    writeFileSync(backup, bytes);
    const owners: number[] = [];
    if (process.getuid?.() === 0) chownSync(cli.dataDir, 65_534, 65_534);
    const location = dataIn(cli.dataDir);
    const verifying = verifyBackup(backup, {
      copy: location.directory.files.restoredCopy,
      onProgress: () => owners.push(statSync(location.directory.files.restoredCopy).uid),
    });
    await expect(verifying).rejects.toThrow("is damaged: the checksum of");
    expect(new Set(owners)).toEqual(new Set([process.getuid?.() ?? 0]));
    expect(statSync(location.directory.files.restoredCopy).uid).toBe(process.getuid?.() ?? 0);
  });
});

test("a prepared backup that is later than the restored one is not compared with it", async () => {
  const later = join(dirname(backup), "production-2026-11-15T13-00-00Z.db");
  cpSync(backup, later);
  {
    using database = new Database(later);
    database.run("ALTER TABLE api_keys ADD COLUMN x TEXT AS (hex(name))");
  }
  rmSync(cli.dataDir, { recursive: true });
  expect((await restore()).out).toContain("is not known here");
});

test("an index that an administrator has added is restored", async () => {
  const condition = "status = 'sold' OR length(name) > 9";
  prepare(`CREATE INDEX sold ON pets (name DESC, id >> 4) WHERE ${condition}`, "ANALYZE");
  expect(await restore()).toMatchObject({ code: 0 });
  using database = new Database(inData());
  expect(database.query("SELECT 1 FROM sqlite_schema WHERE name = 'sold'").all()).toHaveLength(1);
});
