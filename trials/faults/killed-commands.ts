/* The commands that are killed, their data, and what must hold after a kill. */

import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { contentsIn } from "../harness/contents.ts";
import { runPetstore } from "../harness/petstore.ts";
import { postgresUrl } from "../harness/postgres.ts";
import { valkeyUrl } from "../harness/valkey.ts";
import { readBackup } from "../../src/archive/backup.ts";
import { type Contents, differencesBetween } from "../../src/archive/contents.ts";
import { postgresTables } from "../../src/store/postgres/tables.ts";
import { sqliteTables } from "../../src/store/sqlite/tables.ts";
import { newQuota, type Quota } from "../../src/domain/rate-limit.ts";
import { readQuotas } from "../../src/rate-limit/valkey/maintenance.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import type { TableStore } from "../../src/store/tables.ts";

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

const sqliteIn = (dataDir: string) => sqliteTables(join(dataDir, "production.db"));
const petsIn = (path: string) => inspectDatabase(path).rows["pets"] ?? 0;
const auditEntriesIn = (path: string) => inspectDatabase(path).rows["audit"] ?? 0;

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
  await succeed("keys", "create", "--name", "test", "--plan", "pro", "--data", data);
  await addPets(data, pets);
  saveQuota(data);
  await succeed("backup", backups, "--data", data);
  cpSync(data, laterData, { recursive: true });
  await addPets(laterData, MORE_PETS);
  const name = readdirSync(backups).find((entry) => !entry.startsWith(".")) ?? "";
  const contents = await contentsIn(sqliteIn(data));
  return { data, laterData, backup: join(backups, name), contents, rows: 20 * pets };
}

async function succeed(...argv: string[]): Promise<void> {
  const { code, err } = await runPetstore(...argv);
  if (code !== 0) throw new Error(`petstore ${argv[0]}: ${err}`);
}

async function addPets(data: string, count: number): Promise<void> {
  const { store, close } = openSqlite(join(data, "production.db"));
  const create = (i: number) =>
    store.createPet({ name: `pet ${i}`, categoryId: BigInt(i) }, Date.now(), {
      keyId: 1,
      idempotencyKey: crypto.randomUUID(),
      fingerprint: "0".repeat(64),
    });
  for (let from = 0; from < count; from += 1_000) {
    await Promise.all(Array.from({ length: Math.min(1_000, count - from) }, (_, i) => create(from + i)));
  }
  await close();
}

/** The number of requests of key 1 in its day. */
const USED = 55;

function saveQuota(data: string): void {
  const quotas = openQuotaStore(join(data, "production-limits.db"));
  const day = { openedAt: Date.now(), used: USED, graceBeganAt: -1, strikes: 0 };
  const subject = { kind: "key", id: 1 } as const;
  quotas.save([[subject, { ...newQuota(), day }]]);
  quotas.close();
}

/** The names of the problems that are true. */
function problemsOf(problems: Readonly<Record<string, boolean>>): string[] {
  return Object.keys(problems).filter((name) => problems[name]);
}

function backup({ data, contents }: Fixture): Prepare {
  const pets = contents.tables["pets"]?.rows;
  return async (directory) => {
    const complete = () => readdirSync(directory).filter((name) => !name.startsWith("."));
    const check = async () => {
      const problems: string[] = [];
      for (const name of complete()) {
        await readBackup(join(directory, name)).catch((error: unknown) => problems.push(String(error)));
        if (petsIn(join(directory, name, "production.db")) !== pets) problems.push("a backup lacks pets");
      }
      return problems;
    };
    const checkAtEnd = async () => {
      const others = problemsOf({
        "something partial is left": readdirSync(directory).some((name) => name.endsWith(".partial")),
        "there is no backup": complete().length === 0,
      });
      return [...(await check()), ...others];
    };
    return { argv: ["backup", directory, "--data", data], checkAfterKill: check, checkAtEnd };
  };
}

function restore({ backup, laterData, contents }: Fixture): Prepare {
  const pets = contents.tables["pets"]?.rows ?? 0;
  return async (directory) => {
    const data = join(directory, "data");
    cpSync(laterData, data, { recursive: true });
    const store = join(data, "production.db");
    return {
      argv: ["restore", backup, "--replace", "--data", data],
      async checkAfterKill() {
        const { code, out, err } = await runPetstore("pets", "list", "--json", "--data", data);
        if (err.includes("was interrupted; run the same petstore restore command again")) return [];
        if (code !== 0) return [`pets list fails: ${err}`];
        if (JSON.parse(out).length === 0) return ["a command sees an empty store"];
        const isWhole = existsSync(store) && [pets, pets + MORE_PETS].includes(petsIn(store));
        return isWhole ? [] : ["pets are missing"];
      },
      async checkAtEnd() {
        const replaced = readdirSync(data).filter((name) => name.startsWith("production-replaced-"));
        const isKept = replaced.some((name) => {
          const path = join(data, name, "production.db");
          return existsSync(path) && petsIn(path) === pets + MORE_PETS;
        });
        return problemsOf({
          "the restored database has other pets than the backup": petsIn(store) !== pets,
          "the restored database has not one audit entry of the restore":
            auditEntriesIn(store) !== Number(contents.tables["audit"]?.rows) + 1,
          "the replaced database is lost": !isKept,
          "the staged restore is left": existsSync(join(data, "production-restore")),
        });
      },
    };
  };
}

/** Finds problems of a copy, which must be complete if it is visible. */
async function checkCopy(end: TableStore, contents: Contents): Promise<string[]> {
  if (!(await end.exists())) return [];
  const different = differencesBetween(contents, await contentsIn(end, contents.counters));
  const entries = (await contentsIn(end)).tables["audit"]?.rows;
  return problemsOf({
    [`the copy differs in ${different.join(", ")}`]: different.length > 0,
    "the copy has not one audit entry": entries !== Number(contents.tables["audit"]?.rows) + 1,
  });
}

/** The checks of a copy. `quota` reads the quota of key 1 from the target. */
function copyChecks(to: TableStore, contents: Contents, quota: () => Promise<Quota | undefined>) {
  return {
    checkAfterKill: () => checkCopy(to, contents),
    async checkAtEnd() {
      if (!(await to.exists())) return ["the copy is not visible after the end"];
      const isCounted = (await quota())?.day.used === USED;
      return [
        ...(await checkCopy(to, contents)),
        ...problemsOf({ "the quota of the key is not copied": !isCounted }),
      ];
    },
  };
}

function copyTo({ data, contents }: Fixture): Prepare {
  return async () => {
    const [database, limits] = [await postgresUrl(), await valkeyUrl()];
    const quota = async () => {
      const [found] = await readQuotas({ urls: [limits], prefix: "petstore:production:" }, [1]);
      return found?.[1];
    };
    return {
      argv: ["copy", "--to", database, "--limits-url", limits, "--data", data],
      database,
      ...copyChecks(postgresTables({ url: database, schema: "production" }), contents, quota),
    };
  };
}

async function copyFrom({ data }: Fixture): Promise<Prepare> {
  const [url, limits] = [await postgresUrl(), await valkeyUrl()];
  await succeed("copy", "--to", url, "--limits-url", limits, "--data", data);
  const contents = await contentsIn(postgresTables({ url, schema: "production" }));
  return async (directory) => {
    const quota = async () => {
      const quotas = openQuotaStore(join(directory, "production-limits.db"));
      const found = quotas.find({ kind: "key", id: 1 });
      quotas.close();
      return found;
    };
    return {
      argv: ["copy", "--from", url, "--limits-url", limits, "--data", directory],
      ...copyChecks(sqliteIn(directory), contents, quota),
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
 * The command ends with 1, because of the rejected rows. On PostgreSQL, a killed transaction leaves a gap in the
 * identifiers.
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
  backup,
  restore,
  "copy-to": copyTo,
  "copy-from": copyFrom,
  import: (fixture) => importRows(fixture, false),
  export: (fixture) => exportRows(fixture, false),
  "import-postgres": (fixture) => importRows(fixture, true),
  "export-postgres": (fixture) => exportRows(fixture, true),
};
