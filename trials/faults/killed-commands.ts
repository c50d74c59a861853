/* The commands that are killed, their data, and what must hold after a kill. */

import { SQL } from "bun";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { contentsIn, postgresIn, sqliteIn } from "../harness/contents.ts";
import { runPetstore, succeed } from "../harness/petstore.ts";
import { postgresUrl } from "../harness/postgres.ts";
import { hasQuota, hasSavedQuota, quotaFile, saveQuota } from "../harness/quotas.ts";
import { verifyBackup } from "../../src/archive/backup-files.ts";
import type { Contents } from "../../src/archive/contents.ts";
import { postgresTables } from "../../src/store/postgres/table-store.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { readBackupQuotas } from "../../src/store/sqlite/backup-tables.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";

/** Prepares new data for a command that is killed repeatedly, in a directory that is removed afterwards. */
export type Prepare = (directory: string) => Promise<Attempt>;

export interface Attempt {
  readonly argv: readonly string[];
  /** The exit code of a run that is not killed; 0 by default. */
  readonly exitCode?: number;
  /** The URL of the database, if the command uses PostgreSQL. The database is dropped afterwards. */
  readonly database?: string | undefined;
  /** Finds problems right after the kill: data that is visible to others must be complete. */
  checkAfterKill?(): Promise<readonly string[]>;
  /** Finds problems after the same command was run again. */
  checkAtEnd(): Promise<readonly string[]>;
}

/** The number of pets that only the replaced database has, which distinguishes it from the backup. */
const MORE_PETS = 10;

type Fixture = Awaited<ReturnType<typeof createFixture>>;

/**
 * Creates a data directory that nothing changes, its contents, its backup and a later state, and the rows of an import.
 */
export async function createFixture(pets: number) {
  const directory = temporaryDirectory("faults-backup");
  const [data, laterData, backups] = [
    join(directory, "data"),
    join(directory, "later"),
    join(directory, "backups"),
  ];
  await succeed("migrate", "--data", data);
  await succeed("keys", "create", "--name", "test", "--plan", "pro", "--data", data);
  await addPets(data, pets);
  saveQuota(data);
  await succeed("backup", backups, "--data", data);
  cpSync(data, laterData, { recursive: true });
  // So the quotas after a restore are those of the backup.
  rmSync(quotaFile(laterData));
  await addPets(laterData, MORE_PETS);
  const name = readdirSync(backups).find((entry) => entry.endsWith(".db")) ?? "";
  const contents = await contentsIn(sqliteIn(data));
  return { data, laterData, backup: join(backups, name), contents, rows: 20 * pets };
}

async function addPets(data: string, count: number): Promise<void> {
  const { clientStore, close } = openSqlite(join(data, "production.db"));
  const create = (i: number) =>
    clientStore.createPet({ name: `pet ${i}`, categoryId: BigInt(i) }, Date.now(), {
      keyId: 1,
      idempotencyKey: crypto.randomUUID(),
      fingerprint: "0".repeat(64),
    });
  for (let from = 0; from < count; from += 1_000) {
    await Promise.all(Array.from({ length: Math.min(1_000, count - from) }, (_, i) => create(from + i)));
  }
  await close();
}

/** The names of the problems that are true. */
function problemsOf(problems: Readonly<Record<string, boolean>>): string[] {
  return Object.keys(problems).filter((name) => problems[name]);
}

/** What a backup keeps: all but the entry of a restore in the audit trail. */
const keptIn = ({ tables }: Contents) => JSON.stringify({ ...tables, audit: undefined });

/** Creates a new database of PostgreSQL with the data of a backup. */
async function restoredToPostgres(backup: string): Promise<string> {
  const url = await postgresUrl();
  const data = temporaryDirectory("restored");
  await succeed("restore", backup, "--database-url", url, "--data", data);
  return url;
}

async function backup({ data, backup, contents }: Fixture, isPostgres: boolean): Promise<Prepare> {
  const source = isPostgres ? ["--database-url", await restoredToPostgres(backup)] : [];
  return async (directory) => {
    const backups = join(directory, "backups");
    const complete = () =>
      existsSync(backups) ? readdirSync(backups).filter((name) => /^production.*\.db$/.test(name)) : [];
    const check = async () => {
      const problems: string[] = [];
      for (const name of complete()) {
        const path = join(backups, name);
        const read = await verifyBackup(path, { onProgress() {} }).catch((error: unknown) => String(error));
        if (typeof read === "string") problems.push(read);
        else if (keptIn(await contentsOfFile(path)) !== keptIn(contents)) problems.push("other rows");
        else if (!hasQuota(readBackupQuotas(path))) problems.push("other quotas");
      }
      return problems;
    };
    const checkAtEnd = async () => {
      const others = problemsOf({
        "something partial is left": readdirSync(backups).some((name) => name.includes("partial")),
        "there is no backup": complete().length === 0,
        "there is a checksum without a backup": readdirSync(backups).some(
          (name) => name.endsWith(".sha256") && !complete().includes(name.slice(0, -7)),
        ),
      });
      return [...(await check()), ...others];
    };
    const argv = ["backup", backups, "--data", data, ...source];
    return { argv, checkAfterKill: check, checkAtEnd };
  };
}

/** Reads a copy of the file, because reading changes the mode of its journal. */
async function contentsOfFile(path: string): Promise<Contents> {
  const directory = temporaryDirectory("contents");
  try {
    const copy = join(directory, "production.db");
    cpSync(path, copy);
    return await contentsIn(sqliteTables(copy));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function hasQuotaIn(url: string): Promise<boolean> {
  await using reader = await postgresIn(url).read();
  return hasQuota((await reader.quotas()).quotas);
}

async function restore(fixture: Fixture, isPostgres: boolean): Promise<Prepare> {
  const { backup, laterData, contents } = fixture;
  const later = await contentsIn(sqliteIn(laterData));
  const laterBackups = temporaryDirectory("later-backup");
  await succeed("backup", laterBackups, "--data", laterData);
  const laterBackup = join(
    laterBackups,
    readdirSync(laterBackups).find((name) => name.endsWith(".db")) ?? "",
  );
  return async (directory) => {
    const data = join(directory, "data");
    const url = isPostgres ? await restoredToPostgres(laterBackup) : undefined;
    if (!isPostgres) cpSync(laterData, data, { recursive: true });
    const tables = url === undefined ? sqliteIn(data) : postgresIn(url);
    const storage = ["--data", data, ...(url === undefined ? [] : ["--database-url", url])];
    const isQuotaThere = async () => (url === undefined ? hasSavedQuota(data) : hasQuotaIn(url));
    /** The contents of everything that was replaced. */
    const replaced = async (): Promise<string[]> => {
      const prefix = "production[-_]replaced[-_]";
      if (url === undefined) {
        const names = readdirSync(data).filter((name) => new RegExp(`^${prefix}.*\\.db$`).test(name));
        return await Promise.all(names.map(async (name) => keptIn(await contentsOfFile(join(data, name)))));
      }
      await using sql = new SQL(url, { max: 1 });
      const schemas: { name: string }[] =
        await sql`SELECT nspname AS name FROM pg_namespace WHERE nspname ~ ${prefix}`;
      return await Promise.all(
        schemas.map(async ({ name }) => keptIn(await contentsIn(postgresTables({ url, schema: name })))),
      );
    };
    return {
      argv: ["restore", backup, "--replace", ...storage],
      database: url,
      async checkAfterKill() {
        const { code, out, err } = await runPetstore("pets", "list", "--json", ...storage);
        if (code !== 0) return [`pets list fails: ${err}`];
        if (JSON.parse(out).length === 0) return ["a command sees an empty store"];
        const kept = keptIn(await contentsIn(tables));
        return problemsOf({
          "rows are missing or changed": ![keptIn(contents), keptIn(later)].includes(kept),
          "the data are there without the quota of the key":
            kept === keptIn(contents) && !(await isQuotaThere()),
        });
      },
      async checkAtEnd() {
        const now = await contentsIn(tables);
        const entries = Number(contents.tables["audit"]?.rows) + 1;
        return problemsOf({
          "the restored database has other rows than the backup": keptIn(now) !== keptIn(contents),
          "the restored database has not one audit entry of the restore":
            now.tables["audit"]?.rows !== entries,
          "the quota of the key is not restored": !(await isQuotaThere()),
          "identifiers would be assigned again": now.counters["pets"] !== later.counters["pets"],
          "the replaced database is lost": !(await replaced()).includes(keptIn(later)),
          "a copy is left": existsSync(join(data, "production.db.restored")),
        });
      },
    };
  };
}

const isInvalid = (i: number) => i % 100 === 7;

/** Makes rows. One in a hundred is rejected, and goes to the file of rejected rows. */
function rowsOf(rows: number) {
  const file = join(temporaryDirectory("killed-rows"), "pets.csv");
  const numbers = Array.from({ length: rows }, (_, i) => i);
  const lines = numbers.map((i) => `pet ${i},${isInvalid(i) ? "x" : i},\n`);
  writeFileSync(file, `name,categoryId,status\n${lines.join("")}`);
  const valid = numbers.filter((i) => !isInvalid(i));
  return {
    exported: `id,name,categoryId,status\n${valid.map((i, id) => `${id + 1},pet ${i},${i},\n`).join("")}`,
    invalid: rows - valid.length,
    /** Prepares an import, with a new database if it uses PostgreSQL. */
    async importInto(directory: string, isPostgres: boolean) {
      const database = isPostgres ? await postgresUrl() : undefined;
      const storage = ["--data", directory, ...(database ? ["--database-url", database] : [])];
      const rejects = join(directory, "rejects");
      const argv = ["import", file, "--rejects", rejects, "--max-errors", String(rows), ...storage];
      return { argv, database, storage, rejects };
    },
  };
}

/**
 * The command ends with 1, because rows are rejected. On PostgreSQL, a killed transaction leaves a gap of identifiers.
 */
function importRows({ rows }: Fixture, isPostgres: boolean): Prepare {
  const { exported, invalid, importInto } = rowsOf(rows);
  const comparable = (csv: string) => (isPostgres ? csv.replaceAll(/^\d+,/gm, "") : csv);
  return async (directory) => {
    const { argv, database, storage, rejects } = await importInto(directory, isPostgres);
    const checkAtEnd = async () => {
      const { out } = await runPetstore("export", "pets", "--format", "csv", ...storage);
      const lines = readFileSync(rejects, "utf8").match(/line \d+:/g) ?? [];
      const again = await runPetstore(...argv);
      return problemsOf({
        "pets are missing or doubled": comparable(out) !== comparable(exported),
        "wrong rejected rows": lines.length !== invalid || new Set(lines).size !== invalid,
        "it can be imported again": !(again.out + again.err).includes("Nothing was done"),
      });
    };
    return { argv, database, exitCode: 1, checkAtEnd };
  };
}

/** The file of an export is always complete: it is either the earlier one or the new one. */
async function exportRows({ rows }: Fixture, isPostgres: boolean): Promise<Prepare> {
  const { exported, importInto } = rowsOf(rows);
  const { argv, storage } = await importInto(temporaryDirectory("killed-export"), isPostgres);
  await runPetstore(...argv);
  return async (directory) => {
    const file = join(directory, "pets.csv");
    writeFileSync(file, "earlier");
    const lacks = (...texts: string[]) => !texts.includes(readFileSync(file, "utf8"));
    return {
      argv: ["export", "pets", file, ...storage],
      checkAfterKill: async () => problemsOf({ "the file is incomplete": lacks("earlier", exported) }),
      checkAtEnd: async () => problemsOf({ "the file is not the export": lacks(exported) }),
    };
  };
}

export const COMMANDS: Readonly<Record<string, (fixture: Fixture) => Prepare | Promise<Prepare>>> = {
  backup: (fixture) => backup(fixture, false),
  restore: (fixture) => restore(fixture, false),
  "backup-postgres": (fixture) => backup(fixture, true),
  "restore-postgres": (fixture) => restore(fixture, true),
  import: (fixture) => importRows(fixture, false),
  export: (fixture) => exportRows(fixture, false),
  "import-postgres": (fixture) => importRows(fixture, true),
  "export-postgres": (fixture) => exportRows(fixture, true),
};
