/** `npx bun faults/backup.ts`: see --help. */
import { SQL } from "bun";
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import { integerIn, limitRunTime, namesIn, parseFlags, runCommand } from "../harness/command-line.ts";
import { runPetstore } from "../harness/petstore.ts";
import { startPostgres } from "../harness/postgres.ts";
import { plainTable } from "../harness/table.ts";
import { readBackup } from "../src/backup/backup-folder.ts";
import { contentsOf, differencesBetween, type Contents } from "../src/store-copy/contents.ts";
import { postgresEnd, sqliteEnd } from "../src/store-copy/copy-ends.ts";
import type { CopyEnd } from "../src/store-copy/copy-store.ts";
import { openSqlite } from "../src/store/sqlite/sqlite-store.ts";
import { inspectDatabase } from "../src/store/sqlite/snapshot.ts";
import { type Attempt, type KilledCommand, type KillResult, killRepeatedly } from "./killed-commands.ts";

const HELP = `Usage: npx bun faults/backup.ts [OPTIONS]

Kills petstore backup, restore and copy (to PostgreSQL and from it) at random moments, and runs each again. Nothing may be
lost or doubled, nobody may see anything half done, and the second run must finish. Exits with 1 otherwise.

  --kills N     Kills of each command (default: 50)
  --pets N      Pets in the store (default: 20000)
  --only LIST   Some of backup, restore, copy-to, copy-from, with commas between (default: all)
  --help        Show this
`;

const NAMES = ["backup", "restore", "copy-to", "copy-from"] as const;
const FLAGS = {
  kills: { type: "string", default: "50" },
  pets: { type: "string", default: "20000" },
  only: { type: "string", default: NAMES.join(",") },
  help: { type: "boolean", default: false },
} as const;
const RUN_TIMEOUT_MS = 30 * 60_000;
/** In the database that a restore replaces, so that it can be told from the backup. */
const MORE_PETS = 10;

interface Fixture {
  /** A data directory. Nothing changes it. */
  readonly data: string;
  readonly contents: Contents;
  readonly backup: string;
  /** A later state of the data. */
  readonly laterData: string;
}

const sqliteIn = (dataDir: string) => sqliteEnd({ environment: "production", dataDir });
const petsIn = (path: string) => inspectDatabase(path).rows["pets"] ?? 0;

async function createFixture(pets: number): Promise<Fixture> {
  const folder = temporaryFolder("faults-backup");
  const [data, laterData, backups] = [join(folder, "data"), join(folder, "later"), join(folder, "backups")];
  await succeed("keys", "create", "--name", "test", "--plan", "pro", "--data", data);
  await addPets(data, pets);
  await succeed("backup", backups, "--data", data);
  cpSync(data, laterData, { recursive: true });
  await addPets(laterData, MORE_PETS);
  const name = readdirSync(backups).find((entry) => !entry.startsWith(".")) ?? "";
  return { data, laterData, backup: join(backups, name), contents: await contentsIn(sqliteIn(data)) };
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

async function contentsIn(end: CopyEnd): Promise<Contents> {
  const reader = await end.read();
  try {
    return await contentsOf(reader);
  } finally {
    await reader.close();
  }
}

function backupCommand({ data, contents }: Fixture): KilledCommand {
  const pets = contents.tables["pets"]?.rows;
  return {
    name: "backup",
    async prepare() {
      const directory = temporaryFolder("killed-backup");
      const check = async () => {
        const names = readdirSync(directory).filter((name) => !name.startsWith("."));
        const problems: string[] = [];
        for (const name of names) {
          await readBackup(join(directory, name)).catch((error: unknown) => problems.push(String(error)));
          if (petsIn(join(directory, name, "production.db")) !== pets) problems.push("a backup lacks pets");
        }
        return { problems, count: names.length };
      };
      return {
        argv: ["backup", directory, "--data", data],
        checkAfterKill: async () => (await check()).problems,
        async checkAtEnd() {
          const { problems, count } = await check();
          const left = readdirSync(directory).filter((name) => name.endsWith(".partial"));
          if (left.length > 0) problems.push("something partial is left");
          if (count === 0) problems.push("there is no backup");
          return problems;
        },
        remove: async () => rmSync(directory, { recursive: true }),
      };
    },
  };
}

function restoreCommand({ backup, laterData, contents }: Fixture): KilledCommand {
  const pets = contents.tables["pets"]?.rows ?? 0;
  return {
    name: "restore",
    async prepare() {
      const data = join(temporaryFolder("killed-restore"), "data");
      cpSync(laterData, data, { recursive: true });
      const store = join(data, "production.db");
      return {
        argv: ["restore", backup, "--replace", "--data", data],
        async checkAfterKill() {
          const { code, out, err } = await runPetstore("pets", "list", "--json", "--data", data);
          if (err.includes("was interrupted; run the same petstore restore command again")) return [];
          if (code !== 0) return [`pets list fails: ${err}`];
          if (JSON.parse(out).length === 0) return ["a command sees an empty store"];
          return existsSync(store) && [pets, pets + MORE_PETS].includes(petsIn(store))
            ? []
            : ["pets are missing"];
        },
        async checkAtEnd() {
          const problems =
            petsIn(store) === pets ? [] : ["the restored database has other pets than the backup"];
          const replaced = readdirSync(data).filter((name) => name.startsWith("production-replaced-"));
          const kept = replaced.some((name) => {
            const path = join(data, name, "production.db");
            return existsSync(path) && petsIn(path) === pets + MORE_PETS;
          });
          if (!kept) problems.push("the replaced database is lost");
          if (existsSync(join(data, "production-restore"))) problems.push("the staged restore is left");
          return problems;
        },
        remove: async () => rmSync(data, { recursive: true }),
      };
    },
  };
}

/** Problems of a copy: what is visible must be all of it. */
async function checkCopy(end: CopyEnd, contents: Contents): Promise<string[]> {
  if (!(await end.exists())) return [];
  const different = differencesBetween(contents, await contentsIn(end));
  return different.length === 0 ? [] : [`the copy differs in ${different.join(", ")}`];
}

function attemptOf(argv: readonly string[], to: CopyEnd, contents: Contents): Omit<Attempt, "remove"> {
  return {
    argv,
    checkAfterKill: () => checkCopy(to, contents),
    checkAtEnd: async () =>
      (await to.exists()) ? checkCopy(to, contents) : ["the copy is not visible after the end"],
  };
}

function copyToCommand({ data, contents }: Fixture, server: string): KilledCommand {
  let databases = 0;
  return {
    name: "copy-to",
    async prepare() {
      const name = `killed_${++databases}`;
      await administer(server, `CREATE DATABASE ${name}`);
      const url = new URL(server);
      url.pathname = `/${name}`;
      const to = postgresEnd({ url: url.href, schema: "production" });
      return {
        ...attemptOf(["copy", "--to", url.href, "--data", data], to, contents),
        remove: () => administer(server, `DROP DATABASE ${name} WITH (FORCE)`),
      };
    },
  };
}

async function administer(server: string, statement: string): Promise<void> {
  await using sql = new SQL(server, { max: 1 });
  await sql.unsafe(statement);
}

async function copyFromCommand({ data, contents }: Fixture, server: string): Promise<KilledCommand> {
  await administer(server, "CREATE DATABASE source");
  const url = new URL(server);
  url.pathname = "/source";
  await succeed("copy", "--to", url.href, "--data", data);
  return {
    name: "copy-from",
    async prepare() {
      const target = temporaryFolder("killed-copy");
      return {
        ...attemptOf(["copy", "--from", url.href, "--data", target], sqliteIn(target), contents),
        remove: async () => rmSync(target, { recursive: true }),
      };
    },
  };
}

function reportOf(results: readonly KillResult[], pets: number): string {
  return plainTable({
    title: `Commands that were killed at random moments, with ${pets.toLocaleString("en")} pets`,
    header: ["command", "kills", "too late", "duration", "result"],
    rows: results.map(({ name, kills, late, durationMs, problems }) => [
      name,
      String(kills),
      String(late),
      `${Math.round(durationMs)} ms`,
      problems.size === 0
        ? "nothing lost, nothing doubled"
        : [...problems].map(([problem, count]) => `${count} × ${problem}`).join("; "),
    ]),
  });
}

await runCommand("faults/backup", async (args) => {
  const flags = parseFlags(args, FLAGS);
  if (flags.help) {
    process.stdout.write(HELP);
    return 0;
  }
  limitRunTime(RUN_TIMEOUT_MS);
  const kills = integerIn("--kills", flags.kills, 1_000);
  const pets = integerIn("--pets", flags.pets, 1_000_000);
  const names = namesIn("--only", flags.only, NAMES);
  const fixture = await createFixture(pets);
  const postgres = names.some((name) => name.startsWith("copy")) ? await startPostgres() : undefined;
  const url = postgres?.url ?? "";
  const commands = {
    backup: async () => backupCommand(fixture),
    restore: async () => restoreCommand(fixture),
    "copy-to": async () => copyToCommand(fixture, url),
    "copy-from": () => copyFromCommand(fixture, url),
  };
  const results: KillResult[] = [];
  for (const name of names) {
    const onKill = (count: number) => process.stdout.write(`\r${name}: ${count} of ${kills} kills`);
    results.push(await killRepeatedly(await commands[name](), kills, onKill));
    process.stdout.write("\n");
  }
  process.stdout.write(reportOf(results, pets));
  await postgres?.stop();
  return results.some(({ problems }) => problems.size > 0) ? 1 : 0;
});
