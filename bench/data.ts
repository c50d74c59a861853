/*
 * Compares import and export of a million pets with the databases' own tools:
 * `npm run bench:data [-- --check] [-- --docs] [-- --pets N] [-- --rounds N]`, two to four minutes. `--check` exits
 * with 1 if a bar is missed.
 */

import { join } from "node:path";
import { createPet } from "../trials/harness/api-client.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { integer, isGiven, runCommand } from "../trials/harness/command-line.ts";
import { machineNow } from "../trials/harness/machine.ts";
import { createKey, PETSTORE, startPetstore } from "../trials/harness/petstore.ts";
import { postgresUrl } from "../trials/harness/postgres.ts";
import { executable, PSQL, SQLITE_SHELL } from "../trials/harness/programs.ts";
import { median, quantile, ratioOf } from "../trials/harness/statistics.ts";
import { type Attempt, durationOf, isError, SteadyLoad } from "../trials/harness/steady-load.ts";
import {
  type Bar,
  checkBars,
  formatFigure,
  publishTables,
  type Table,
  tableOf,
} from "../trials/harness/table.ts";
import { PET_NAMES } from "./servers.ts";
import { type Timed, timed } from "./timed.ts";

const BARS = { sqliteImport: 3, postgresImport: 3, export: 2, memoryMb: 200, p99Ms: 50 } as const;

const STATUSES = ["available", "pending", "sold", ""];

/** Writes a file of pets. One name in a thousand needs quotes. */
async function writePets(count: number): Promise<string> {
  const path = join(temporaryDirectory("bench-data"), "pets.csv");
  const file = Bun.file(path).writer({ highWaterMark: 1_000_000 });
  file.write("id,name,categoryId,status\n");
  for (let id = 1; id <= count; id++) {
    const name = PET_NAMES[id % PET_NAMES.length];
    const cell = id % 1_000 === 0 ? `"${name}, ""the dog"""` : name;
    file.write(`${id},${cell},${id % 1_000},${STATUSES[id % STATUSES.length]}\n`);
  }
  await file.end();
  return path;
}

interface Figure extends Pick<Timed, "seconds" | "memoryMb"> {
  readonly name: string;
  /** The ratio to the database's own tool. */
  readonly ratio?: number;
  readonly most?: number | undefined;
}

const petstore = (...args: string[]) => timed([...PETSTORE, ...args]);
const emptyData = () => ["--data", temporaryDirectory("bench-data-store")];

/** The figures of the database's own tool, and of the commands that are compared with it. */
const FIGURES = [
  ["SQLite: .import of the shell", "shell import"],
  ["SQLite: petstore import", "import", "shell import", BARS.sqliteImport],
  ["SQLite: petstore import --keep-ids", "import --keep-ids", "shell import", BARS.sqliteImport],
  ["SQLite: CSV output of the shell", "shell export"],
  ["SQLite: petstore export, CSV", "export csv", "shell export", BARS.export],
  ["SQLite: petstore export, NDJSON", "export ndjson", "shell export", BARS.export],
  ["PostgreSQL: COPY", "copy"],
  ["PostgreSQL: petstore import", "import postgres", "copy", BARS.postgresImport],
] as const;

async function measureRounds(csv: string, rounds: number): Promise<Figure[]> {
  const times = new Map<string, Timed[]>();
  const add = async (name: string, run: Promise<Timed>) => {
    const timed = await run;
    times.set(name, [...(times.get(name) ?? []), timed]);
    process.stderr.write(`${name}: ${timed.seconds.toFixed(1)} s\n`);
  };
  for (let round = 0; round < rounds; round++) {
    const data = emptyData();
    const directory = temporaryDirectory("bench-data-out");
    await add("shell import", shellImport(csv));
    await add("import", petstore("import", csv, ...data));
    await add("import --keep-ids", petstore("import", csv, "--keep-ids", ...emptyData()));
    await add(
      "shell export",
      shellExport(join(data[1] ?? "", "production.db"), join(directory, "shell.csv")),
    );
    for (const format of ["csv", "ndjson"]) {
      await add(`export ${format}`, petstore("export", "pets", join(directory, `pets.${format}`), ...data));
    }
    const [copied, imported] = [await postgresUrl(), await postgresUrl()];
    await add("copy", copyImport(copied, csv));
    await add("import postgres", petstore("import", csv, "--database-url", imported, ...emptyData()));
  }
  return FIGURES.map(([name, own, tool, most]) => {
    const of = times.get(own) ?? [];
    const seconds = of.map((each) => each.seconds);
    const memoryMb = Math.max(...of.map((each) => each.memoryMb));
    if (tool === undefined) return { name, seconds: median(seconds), memoryMb };
    const baseline = (times.get(tool) ?? []).map((each) => each.seconds);
    return { name, seconds: median(seconds), memoryMb, ratio: ratioOf(seconds, baseline).median, most };
  });
}

type Waits = Awaited<ReturnType<typeof measureWaits>>;

/** The rate of requests. A third of them are creates. */
const PER_SECOND = 60;

/** Measures how an import affects a client of a running server. */
async function measureWaits(name: string, csv: string, storage: readonly string[]) {
  const { key } = await createKey(storage);
  const server = await startPetstore([...storage, "--port", "0"]);
  await createPet(server.url, key);
  const load = new SteadyLoad({ urls: [server.url], key, perSecond: PER_SECOND });
  await petstore("import", csv, ...storage);
  await load.stop();
  await server.stop();
  const [writes, reads] = [[], []] as [Attempt[], Attempt[]];
  for (const attempt of load.attempts) (attempt.kind === "create" ? writes : reads).push(attempt);
  const p99Of = (attempts: readonly Attempt[]) => quantile(attempts.map(durationOf), 0.99);
  const failures = load.attempts.filter(isError).length;
  return { name, reads: p99Of(reads), writes: p99Of(writes), failures };
}

function barsOf(figures: readonly Figure[], waits: readonly Waits[]): Bar[] {
  return [
    ...figures.flatMap(({ name, memoryMb, ratio, most }) => {
      if (ratio === undefined || most === undefined) return [];
      return [
        { name: `${name}, × the database's own tool`, value: ratio, most },
        { name: `${name}, memory, MB`, value: memoryMb, most: BARS.memoryMb },
      ];
    }),
    ...waits.flatMap(({ name, reads, writes, failures }) => [
      { name: `${name}, reads of a client, p99 ms`, value: reads, most: BARS.p99Ms },
      { name: `${name}, writes of a client, p99 ms`, value: writes, most: BARS.p99Ms },
      { name: `${name}, failed requests`, value: failures, most: 0 },
    ]),
  ];
}

function timesTable(figures: readonly Figure[], pets: number): Table {
  return tableOf(`Import and export of ${pets.toLocaleString("en")} pets`, figures, {
    "": ({ name }) => name,
    seconds: ({ seconds }) => formatFigure(seconds),
    "rows/s": ({ seconds }) => formatFigure(pets / seconds),
    MB: ({ memoryMb }) => formatFigure(memoryMb),
    "×": ({ ratio }) => ratio?.toFixed(2) ?? "",
    "at most": ({ most }) => String(most ?? ""),
  });
}

function waitsTable(waits: readonly Waits[]): Table {
  const table = tableOf("A client of the running server during an import", waits, {
    "": ({ name }) => name,
    "reads, ms": ({ reads }) => formatFigure(reads),
    "writes, ms": ({ writes }) => formatFigure(writes),
    failed: ({ failures }) => String(failures),
  });
  const note = `${PER_SECOND} requests a second, a third of them new pets; p99 of the responses.`;
  return { ...table, note };
}

/*
 * Measures the databases' own tools with the same rows: `.import` and CSV output of the SQLite shell, and COPY of
 * PostgreSQL. Their tables have the columns, constraints and index of the table of pets. `.import` reads an empty cell
 * as an empty text, so the table allows one.
 */

const SQLITE_TABLE = `
  PRAGMA journal_mode = WAL;
  CREATE TABLE pets (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 1024),
    category_id INTEGER NOT NULL,
    status TEXT CHECK (status = '' OR status = 'available' OR status = 'pending' OR status = 'sold')
  ) STRICT;
  CREATE INDEX pets_by_status ON pets (status, id) WHERE status <> '';`;

const POSTGRES_TABLE = `
  DROP TABLE IF EXISTS pets_copy;
  CREATE TABLE pets_copy (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1024),
    category_id bigint NOT NULL,
    status text CHECK (status IN ('available', 'pending', 'sold'))
  );
  CREATE INDEX pets_copy_by_status ON pets_copy (status, id) WHERE status IS NOT NULL;`;

const shell = () => executable(SQLITE_SHELL);

async function shellImport(csv: string): Promise<Timed> {
  const database = join(temporaryDirectory("bench-data-shell"), "pets.db");
  await timed([shell(), database, SQLITE_TABLE]);
  return timed([shell(), database, ".mode csv", `.import --skip 1 ${csv} pets`]);
}

/** Exports the database of a server with the shell. */
async function shellExport(database: string, file: string): Promise<Timed> {
  const select = "SELECT id, name, category_id, status FROM pets";
  return timed([shell(), "-readonly", "-csv", database, select], { outputFile: file });
}

async function copyImport(url: string, csv: string): Promise<Timed> {
  const psql = [executable(PSQL), "--quiet", url, "--command"];
  await timed([...psql, POSTGRES_TABLE]);
  const columns = "(id, name, category_id, status)";
  return timed([...psql, `\\copy pets_copy ${columns} FROM '${csv}' WITH (FORMAT csv, HEADER)`]);
}

await runCommand({
  name: "bench:data",
  flags: { docs: isGiven, check: isGiven, pets: integer(1_000_000, 10_000_000), rounds: integer(3, 20) },
  maxMinutes: 15,
  async main({ docs, check, pets, rounds }) {
    const before = machineNow();
    const csv = await writePets(pets);
    const figures = await measureRounds(csv, rounds);
    const waits = [
      await measureWaits("SQLite", csv, emptyData()),
      await measureWaits("PostgreSQL", csv, [...emptyData(), "--database-url", await postgresUrl()]),
    ];
    const note = `Medians of ${rounds} rounds, the ratio of each round to the database's own tool on the same rows, and the highest memory. PostgreSQL runs with fsync off, as in the tests. Before the run: ${before}.`;
    const tables = [{ ...timesTable(figures, pets), note }, waitsTable(waits)];
    publishTables(tables, docs && { file: "bench/results.md", name: "data" });
    return checkBars(barsOf(figures, waits), check);
  },
});
