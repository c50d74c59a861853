/**
 * Import and export of a million pets against the databases' own tools:
 * `npm run bench:data [-- --check] [-- --docs] [-- --pets N] [-- --rounds N]`, two to four minutes. `--check` exits
 * with 1 if a bar is missed.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import { integerIn, limitRunTime, parseFlags, runCommand } from "../harness/command-line.ts";
import { replaceSection } from "../harness/document-section.ts";
import { describeMachine, type Machine, machineText } from "../harness/machine.ts";
import { createKey, PETSTORE, startPetstore } from "../harness/petstore.ts";
import { postgresUrl } from "../harness/postgres.ts";
import { median, ratioOf } from "../harness/statistics.ts";
import { formatFigure, markdownTable, plainTable, type Table } from "../harness/table.ts";
import { copyImport, shellExport, shellImport, type Timed, timed } from "./data-baselines.ts";
import { measureClient, p99Of } from "./data-client.ts";

const MAX_RUN_MS = 15 * 60_000;
const BARS = { sqliteImport: 3, postgresImport: 3, export: 2, memoryMb: 200, p99Ms: 50 } as const;

const NAMES = "Rex Mia Luna Bello Minka Oskar Nala Balu Felix Kira Rocky Lilly Simba Emma Bruno Socke".split(
  " ",
);
const STATUSES = ["available", "pending", "sold", ""];

/** One name in a thousand needs quotes. */
function writePets(count: number): string {
  const path = join(temporaryFolder("bench-data"), "pets.csv");
  const descriptor = openSync(path, "w");
  let text = "id,name,categoryId,status\n";
  for (let id = 1; id <= count; id++) {
    const name = NAMES[id % NAMES.length];
    const cell = id % 1_000 === 0 ? `"${name}, ""the dog"""` : name;
    text += `${id},${cell},${id % 1_000},${STATUSES[id % STATUSES.length]}\n`;
    if (text.length < 1_000_000 && id < count) continue;
    writeSync(descriptor, text);
    text = "";
  }
  closeSync(descriptor);
  return path;
}

interface Figure {
  readonly name: string;
  readonly of: readonly Timed[];
  readonly against?: readonly Timed[];
  readonly most?: number;
}

const petstore = (...args: string[]) => timed([...PETSTORE, ...args]);
const emptyData = () => ["--data", temporaryFolder("bench-data-store")];

async function measureRounds(csv: string, rounds: number): Promise<Figure[]> {
  const times = new Map<string, Timed[]>();
  const add = async (name: string, run: Promise<Timed>) => {
    const { seconds, memoryMb } = await run;
    times.set(name, [...(times.get(name) ?? []), { seconds, memoryMb }]);
    process.stderr.write(`${name}: ${seconds.toFixed(1)} s\n`);
  };
  for (let round = 0; round < rounds; round++) {
    const data = emptyData();
    const folder = temporaryFolder("bench-data-out");
    await add("shell import", shellImport(csv));
    await add("import", petstore("import", csv, ...data));
    await add("import --keep-ids", petstore("import", csv, "--keep-ids", ...emptyData()));
    await add("shell export", shellExport(join(data[1] ?? "", "production.db"), join(folder, "shell.csv")));
    for (const format of ["csv", "ndjson"]) {
      await add(`export ${format}`, petstore("export", "pets", join(folder, `pets.${format}`), ...data));
    }
    const [copied, imported] = [await postgresUrl(), await postgresUrl()];
    await add("copy", copyImport(copied, csv));
    await add("import postgres", petstore("import", csv, "--database-url", imported, ...emptyData()));
  }
  const of = (name: string) => times.get(name) ?? [];
  const against = (baseline: string, most: number) => ({ against: of(baseline), most });
  const { sqliteImport, postgresImport, export: exportBar } = BARS;
  return [
    { name: "SQLite: .import of the shell", of: of("shell import") },
    { name: "SQLite: petstore import", of: of("import"), ...against("shell import", sqliteImport) },
    {
      name: "SQLite: petstore import --keep-ids",
      of: of("import --keep-ids"),
      ...against("shell import", sqliteImport),
    },
    { name: "SQLite: CSV output of the shell", of: of("shell export") },
    { name: "SQLite: petstore export, CSV", of: of("export csv"), ...against("shell export", exportBar) },
    {
      name: "SQLite: petstore export, NDJSON",
      of: of("export ndjson"),
      ...against("shell export", exportBar),
    },
    { name: "PostgreSQL: COPY", of: of("copy") },
    { name: "PostgreSQL: petstore import", of: of("import postgres"), ...against("copy", postgresImport) },
  ];
}

interface Waits {
  readonly name: string;
  readonly reads: number;
  readonly writes: number;
  readonly failures: number;
}

/** What a client of a running server notices of an import. */
async function measureWaits(name: string, csv: string, storage: readonly string[]): Promise<Waits> {
  const { key } = await createKey(storage);
  const server = await startPetstore([...storage, "--port", "0"]);
  const figures = await measureClient(server.url, key, petstore("import", csv, ...storage));
  await server.stop();
  process.stderr.write(`${name}: ${figures.reads.length} reads, ${figures.writes.length} writes\n`);
  return { name, ...p99Of(figures), failures: figures.failures.length };
}

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly most: number;
}

function barsOf(figures: readonly Figure[], waits: readonly Waits[]): Bar[] {
  const secondsOf = (of: readonly Timed[]) => of.map(({ seconds }) => seconds);
  return [
    ...figures.flatMap(({ name, of, against, most }) => {
      if (against === undefined || most === undefined) return [];
      const value = ratioOf(secondsOf(of), secondsOf(against)).median;
      const memory = Math.max(...of.map(({ memoryMb }) => memoryMb));
      return [
        { name: `${name}, × the database's own tool`, value, most },
        { name: `${name}, memory, MB`, value: memory, most: BARS.memoryMb },
      ];
    }),
    ...waits.flatMap(({ name, reads, writes, failures }) => [
      { name: `${name}, reads of a client, p99 ms`, value: reads, most: BARS.p99Ms },
      { name: `${name}, writes of a client, p99 ms`, value: writes, most: BARS.p99Ms },
      { name: `${name}, failed requests`, value: failures, most: 0 },
    ]),
  ];
}

function timesTable(figures: readonly Figure[], machine: Machine, { pets, rounds }: Run): Table {
  const rows = figures.map(({ name, of, against, most }) => {
    const seconds = of.map((each) => each.seconds);
    const ratio =
      against &&
      ratioOf(
        seconds,
        against.map((each) => each.seconds),
      ).median;
    return [
      name,
      formatFigure(median(seconds)),
      formatFigure(pets / median(seconds)),
      formatFigure(Math.max(...of.map((each) => each.memoryMb))),
      ratio === undefined ? "" : ratio.toFixed(2),
      most === undefined ? "" : String(most),
    ];
  });
  return {
    title: `Import and export of ${pets.toLocaleString("en")} pets`,
    note: `Medians of ${rounds} rounds, the ratio of each round to the database's own tool on the same rows, and the highest memory. PostgreSQL runs with fsync off, as in the tests. ${machineText(machine)}, Bun ${Bun.version}. Load average before the run: ${machine.load}.`,
    header: ["", "seconds", "rows/s", "MB", "×", "at most"],
    rows,
  };
}

function waitsTable(waits: readonly Waits[]): Table {
  return {
    title: "A client of the running server during an import",
    note: "50 pages and 10 new pets a second, p99 of the responses.",
    header: ["", "reads, ms", "writes, ms", "failed"],
    rows: waits.map(({ name, reads, writes, failures }) => [
      name,
      formatFigure(reads),
      formatFigure(writes),
      String(failures),
    ]),
  };
}

interface Run {
  readonly pets: number;
  readonly rounds: number;
}

await runCommand("bench:data", async (args) => {
  const flags = parseFlags(args, {
    docs: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    pets: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "3" },
  });
  const run = {
    pets: integerIn("--pets", flags.pets, 10_000_000),
    rounds: integerIn("--rounds", flags.rounds, 20),
  };
  limitRunTime(MAX_RUN_MS);
  const machine = describeMachine();
  const csv = writePets(run.pets);
  const figures = await measureRounds(csv, run.rounds);
  const waits = [
    await measureWaits("SQLite", csv, emptyData()),
    await measureWaits("PostgreSQL", csv, [...emptyData(), "--database-url", await postgresUrl()]),
  ];
  const tables = [timesTable(figures, machine, run), waitsTable(waits)];
  for (const table of tables) process.stdout.write(plainTable(table));
  if (flags.docs) replaceSection("bench/results.md", "data", tables.map(markdownTable).join("\n"));
  const missed = barsOf(figures, waits).filter(({ value, most }) => value > most);
  for (const { name, value, most } of missed) {
    process.stdout.write(`missed: ${name}: ${formatFigure(value)}, at most ${most}\n`);
  }
  return flags.check && missed.length > 0 ? 1 : 0;
});
