/**
 * Kills imports and exports at random moments and checks that nothing is lost or doubled:
 * `bun faults/data.ts [--kills 50] [--pets 200000] [--engines sqlite,postgres]`, some minutes.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import { integerIn, limitRunTime, namesIn, parseFlags, runCommand } from "../harness/command-line.ts";
import { PETSTORE } from "../harness/petstore.ts";
import { postgresUrl } from "../harness/postgres.ts";
import { plainTable } from "../harness/table.ts";

const MAX_RUN_MS = 30 * 60_000;
const ENGINES = ["sqlite", "postgres"] as const;
type Engine = (typeof ENGINES)[number];

/** One row in a hundred is rejected, and its line goes to the file of rejected rows. */
function petsFile(pets: number): string {
  const path = join(temporaryFolder("faults-data"), "pets.csv");
  const rows = Array.from({ length: pets }, (_, i) => `pet ${i},${i % 100 === 7 ? "x" : i},\n`);
  writeFileSync(path, `name,categoryId,status\n${rows.join("")}`);
  return path;
}

function expectedExport(pets: number): string {
  let text = "id,name,categoryId,status\n";
  let id = 0;
  for (let i = 0; i < pets; i++) if (i % 100 !== 7) text += `${++id},pet ${i},${i},\n`;
  return text;
}

interface Ended {
  /** Undefined if it was killed. */
  readonly code: number | undefined;
  readonly out: string;
  /** Standard output and standard error. */
  readonly output: string;
  readonly ms: number;
}

/** Runs a command; a kill that comes too late has no effect. */
async function run(args: readonly string[], killAfterMs?: number): Promise<Ended> {
  const startedAt = performance.now();
  const child = Bun.spawn([...PETSTORE, ...args], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  clearTimeout(timer);
  const ms = performance.now() - startedAt;
  const code = child.signalCode === null ? (child.exitCode ?? undefined) : undefined;
  return { code, out, output: out + err, ms };
}

async function newStorage(engine: Engine): Promise<string[]> {
  const data = ["--data", temporaryFolder("faults-data-store")];
  return engine === "sqlite" ? data : [...data, "--database-url", await postgresUrl()];
}

/** In the data folder. */
function rejectsIn(storage: readonly string[]): string {
  return join(storage[1] ?? "", "rejects");
}

function check(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}

interface Report {
  readonly what: string;
  readonly kills: number;
  /** Runs that said where they continue. */
  readonly continued: number;
  readonly completed: number;
}

interface Options {
  readonly engine: Engine;
  readonly kills: number;
  readonly pets: number;
}

/** An import is killed and run again until it is complete, and then the next one begins on an empty database. */
async function killImports({ engine, kills, pets }: Options): Promise<Report> {
  const file = petsFile(pets);
  const expected = expectedExport(pets);
  const invalid = Math.ceil((pets - 7) / 100);
  const flags = ["--max-errors", String(pets)];
  const importInto = (storage: readonly string[], killAfterMs?: number) =>
    run(["import", file, "--rejects", rejectsIn(storage), ...flags, ...storage], killAfterMs);
  const verify = async (storage: readonly string[]) => {
    const { out, output } = await run(["export", "pets", "--format", "csv", ...storage]);
    const [count, most] = [out, expected].map((text) => text.split("\n").length);
    check(out === expected, `${engine}: ${count} lines instead of ${most}: ${output.slice(-300)}`);
    const lines = readFileSync(rejectsIn(storage), "utf8").match(/line \d+:/g) ?? [];
    check(lines.length === invalid && new Set(lines).size === invalid, `${engine}: wrong rejected rows`);
    const again = await importInto(storage);
    check(again.code === 1 && again.output.includes("Nothing was done"), `${engine}: ${again.output}`);
  };

  const first = await newStorage(engine);
  const { ms } = await importInto(first);
  await verify(first);
  const report = { killed: 0, continued: 0, completed: 0 };
  let storage = await newStorage(engine);
  while (report.killed < kills) {
    const ended = await importInto(storage, Math.random() * ms);
    if (ended.output.includes("continuing the import")) report.continued++;
    if (ended.code === undefined) {
      report.killed++;
      continue;
    }
    // Rows were rejected, which is a failure, too.
    const isEnd = ended.code === 1 && ended.output.includes("rows were rejected");
    check(isEnd || ended.output.includes("Nothing was done"), `${engine}: ${ended.code} ${ended.output}`);
    await verify(storage);
    report.completed++;
    storage = await newStorage(engine);
  }
  await importInto(storage);
  await verify(storage);
  return { what: `import, ${engine}`, kills, continued: report.continued, completed: report.completed + 1 };
}

/** The file of an export is always complete: the earlier one, or the new one. */
async function killExports({ engine, kills, pets }: Options): Promise<Report> {
  const storage = await newStorage(engine);
  await run([
    "import",
    petsFile(pets),
    "--rejects",
    rejectsIn(storage),
    "--max-errors",
    String(pets),
    ...storage,
  ]);
  const expected = expectedExport(pets);
  const path = join(temporaryFolder("faults-data-export"), "pets.csv");
  const exportTo = (killAfterMs?: number) => run(["export", "pets", path, ...storage], killAfterMs);
  const { ms } = await exportTo();
  let killed = 0;
  let completed = 0;
  while (killed < kills) {
    writeFileSync(path, "earlier");
    const { code, output } = await exportTo(Math.random() * ms);
    const content = readFileSync(path, "utf8");
    check(content === "earlier" || content === expected, `${engine}: the export is incomplete`);
    if (code === undefined) killed++;
    else {
      check(code === 0 && content === expected, `${engine}: ${output}`);
      completed++;
    }
  }
  const { code } = await exportTo();
  check(code === 0 && readFileSync(path, "utf8") === expected, `${engine}: the export is incomplete`);
  return { what: `export, ${engine}`, kills, continued: 0, completed: completed + 1 };
}

await runCommand("faults/data", async (args) => {
  const flags = parseFlags(args, {
    kills: { type: "string", default: "50" },
    pets: { type: "string", default: "200000" },
    engines: { type: "string", default: "sqlite,postgres" },
  });
  limitRunTime(MAX_RUN_MS);
  const kills = integerIn("--kills", flags.kills, 10_000);
  const pets = integerIn("--pets", flags.pets, 10_000_000);
  const reports: Report[] = [];
  for (const engine of namesIn("--engines", flags.engines, ENGINES)) {
    for (const kill of [killImports, killExports]) {
      const report = await kill({ engine, kills, pets });
      reports.push(report);
      process.stderr.write(`${report.what}: ${report.kills} kills\n`);
    }
  }
  process.stdout.write(
    plainTable({
      title: "Imports and exports that were killed",
      note: `SIGKILL at random moments of commands with ${pets.toLocaleString("en")} rows. Nothing was lost, nothing was doubled, and every command finished when it was run again.`,
      header: ["", "kills", "continued", "completed"],
      rows: reports.map(({ what, kills, continued, completed }) => [
        what,
        String(kills),
        String(continued),
        String(completed),
      ]),
    }),
  );
  return 0;
});
