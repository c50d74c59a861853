import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { verifyBackup } from "../../src/archive/backup-files.ts";
import { DataDirectory } from "../../src/data-directory.ts";
import { runProgram } from "../harness/child.ts";
import { PETSTORE, startPetstore, succeed } from "../harness/petstore.ts";
import { hasSavedQuota, quotaFile, saveQuota } from "../harness/quotas.ts";
import { type SystemCall, withLateSyncs } from "./trace.ts";

/** What happens on a disk, and what holds when the power fails in the middle of it. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** Prepares files in a directory, which are on the disk. */
  prepare(root: string): Promise<unknown>;
  /** Does the work. `under` is the prefix of the process that is recorded. */
  run(root: string, under: readonly string[]): Promise<void>;
  /** What a call acknowledges, if it does: for a command, its exit without an error. */
  acknowledged(call: SystemCall): readonly string[];
  /** Finds problems of what a power failure left in a copy of the directory. */
  check(root: string, acknowledged: ReadonlySet<string>): Promise<readonly string[]> | readonly string[];
}

const DATA = "data";
const BACKUPS = "backups";
const ROWS = 400;
const MORE_ROWS = 7;
/** With the reads, as many as the first key of a server may send in a minute. */
const WRITES = 40;

const dataIn = (root: string) => join(root, DATA);
const backupsIn = (root: string) => join(root, BACKUPS);

function petRows(count: number, name: string): string {
  return `name,categoryId\n${Array.from({ length: count }, (_, i) => `${name} ${i},${i % 90}\n`).join("")}`;
}

/** Fills the database of a directory. */
async function addPets(root: string, count: number, name = "pet"): Promise<void> {
  const file = join(root, `${name}.csv`);
  writeFileSync(file, petRows(count, name));
  await succeed("import", file, "--data", dataIn(root));
}

async function run(under: readonly string[], ...argv: string[]): Promise<void> {
  const { code, err } = await runProgram([...under, ...PETSTORE, ...argv]);
  if (code !== 0) throw new Error(`petstore ${argv[0]}: ${err}`);
}

const DONE = "the command has succeeded";
const exits = ({ name, args }: SystemCall) => (name === "exit_group" && args[0] === "0" ? [DONE] : []);

/** The names of the pets in a database, after the log that the power failure left was read. */
function petsIn(file: string): readonly string[] | string {
  try {
    using database = new Database(file);
    const whole = database.query<{ integrity_check: string }, []>("PRAGMA integrity_check").get();
    if (whole?.integrity_check !== "ok") return `the database is damaged: ${whole?.integrity_check}`;
    const rows = database.query<{ name: string }, []>("SELECT name FROM pets ORDER BY id").all();
    return rows.map(({ name }) => name);
  } catch (error) {
    return String(error);
  }
}

const storeIn = (root: string) => join(dataIn(root), "production.db");

async function backupProblems(root: string): Promise<readonly string[]> {
  const directory = backupsIn(root);
  const names = existsSync(directory) ? readdirSync(directory).filter((name) => name.endsWith("Z.db")) : [];
  const problems = names.map((name) =>
    verifyBackup(join(directory, name), { onProgress() {} }).then(
      ({ facts }) => (facts.rows["pets"] === ROWS ? [] : ["a backup lacks rows"]),
      (error: unknown) => [String(error)],
    ),
  );
  return (await Promise.all(problems)).flat();
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "writes",
    title: "A server starts for the first time and creates pets, which others read",
    prepare: async () => {},
    async run(root, under) {
      const flags = ["--data", dataIn(root), "--port", "0", "--admin-address", "off"];
      const server = await startPetstore(flags, withLateSyncs(under));
      const headers = { Authorization: `Bearer ${server.key}`, "Content-Type": "application/json" };
      const create = async (i: number) => {
        const body = `{"name":"pet ${i}","categoryId":${i % 90}}`;
        const { status } = await fetch(`${server.url}/pets`, { method: "POST", headers, body });
        if (status !== 201) throw new Error(`a pet got ${status}`);
      };
      const readMeanwhile = async () => {
        await Bun.sleep(10);
        const { status } = await fetch(`${server.url}/pets?limit=${WRITES}`, { headers });
        if (status !== 200) throw new Error(`a list got ${status}`);
      };
      // One at a time, each beside a client that reads, and then many together.
      for (let i = 0; i < WRITES / 2; i++) await Promise.all([create(i), readMeanwhile()]);
      await Promise.all(Array.from({ length: WRITES / 2 }, (_, i) => create(WRITES / 2 + i)));
      await server.stop("SIGTERM");
    },
    acknowledged({ args }) {
      const sent = args.filter((each) => Buffer.isBuffer(each)).map((each) => each.toString("latin1"));
      // A pet that somebody has read is as good as acknowledged.
      const shown = sent.filter((text) => /^HTTP\/1\.1 20[01]/.test(text));
      return shown.flatMap((text) => [...text.matchAll(/"name":"(pet \d+)"/g)].map(([, name = ""]) => name));
    },
    check(root, acknowledged) {
      const file = storeIn(root);
      const directory = new DataDirectory({ path: dataIn(root), environment: "production" });
      if (!existsSync(file)) return acknowledged.size > 0 ? ["the database is lost"] : [];
      const lost = existsSync(dataIn(root)) ? directory.findLostDatabase() : undefined;
      if (lost !== undefined) return [`the server does not start again: ${lost.message}`];
      if (acknowledged.size === 0) return [];
      const found = petsIn(file);
      if (typeof found === "string") return [found];
      const names = new Set(found);
      return [
        ...([...acknowledged].every((name) => names.has(name))
          ? []
          : ["a pet that was acknowledged or shown is lost"]),
        ...(names.size < found.length ? ["a pet is there twice"] : []),
      ];
    },
  },
  {
    name: "backup",
    title: "A backup is made in a new directory",
    prepare: (root) => addPets(root, ROWS),
    run: (root, under) => run(under, "backup", backupsIn(root), "--data", dataIn(root)),
    acknowledged: exits,
    async check(root, acknowledged) {
      const problems = await backupProblems(root);
      const directory = backupsIn(root);
      const hasOne = existsSync(directory) && readdirSync(directory).some((name) => name.endsWith("Z.db"));
      return acknowledged.size > 0 && !hasOne ? [...problems, "the backup is lost"] : problems;
    },
  },
  {
    name: "restore",
    title: "A backup replaces the database",
    async prepare(root) {
      await addPets(root, ROWS);
      saveQuota(dataIn(root));
      await succeed("backup", backupsIn(root), "--data", dataIn(root));
      rmSync(quotaFile(dataIn(root)));
      await addPets(root, MORE_ROWS, "later");
    },
    run: (root, under) => run(under, "restore", backupsIn(root), "--replace", "--data", dataIn(root)),
    acknowledged: exits,
    check(root, acknowledged) {
      const found = petsIn(storeIn(root));
      if (typeof found === "string") return [found];
      const allowed = acknowledged.size > 0 ? [ROWS] : [ROWS, ROWS + MORE_ROWS];
      const problems = allowed.includes(found.length) ? [] : [`there are ${found.length} pets`];
      if (found.length === ROWS && !hasSavedQuota(dataIn(root)))
        problems.push("the data are there without the quota of the key");
      if (acknowledged.size === 0) return problems;
      const replaced = readdirSync(dataIn(root)).find((name) => name.includes("-replaced-"));
      const before =
        replaced === undefined ? "the replaced database is lost" : petsIn(join(dataIn(root), replaced));
      if (typeof before === "string") return [...problems, before];
      return before.length === ROWS + MORE_ROWS
        ? problems
        : [...problems, "the replaced database lacks pets"];
    },
  },
  {
    name: "import",
    title: "Rows are imported into a database with others, some are rejected",
    async prepare(root) {
      await addPets(root, MORE_ROWS, "earlier");
      writeFileSync(join(root, "rows.csv"), petRows(5 * ROWS, "row"));
    },
    async run(root, under) {
      // As under a server, the end of the command writes nothing from the log into the database.
      using reader = new Database(storeIn(root));
      reader.run("SELECT count(*) FROM pets");
      await run(under, "import", join(root, "rows.csv"), "--data", dataIn(root));
    },
    acknowledged: exits,
    check(root, acknowledged) {
      const found = petsIn(storeIn(root));
      if (typeof found === "string") return [found];
      const isComplete = found.length === MORE_ROWS + 5 * ROWS;
      const hasEarlier = found.filter((name) => name.startsWith("earlier")).length === MORE_ROWS;
      return [
        ...(hasEarlier ? [] : ["earlier rows are lost"]),
        ...(new Set(found).size < found.length ? ["a row is there twice"] : []),
        ...(acknowledged.size > 0 && !isComplete ? [`${found.length} rows are there after the end`] : []),
      ];
    },
  },
  {
    name: "export",
    title: "An export replaces an earlier one",
    async prepare(root) {
      await addPets(root, ROWS);
      mkdirSync(join(root, "out"));
      writeFileSync(join(root, "out/pets.ndjson"), "earlier\n");
      await succeed("export", "pets", join(root, "whole.ndjson"), "--data", dataIn(root));
    },
    run: (root, under) => run(under, "export", "pets", join(root, "out/pets.ndjson"), "--data", dataIn(root)),
    acknowledged: exits,
    check(root, acknowledged) {
      const text = readFileSync(join(root, "out/pets.ndjson"), "utf8");
      const isWhole = text === readFileSync(join(root, "whole.ndjson"), "utf8");
      if (isWhole || (acknowledged.size === 0 && text === "earlier\n")) return [];
      return [`the file has ${text.length} bytes, and is neither the earlier one nor the export`];
    },
  },
];
