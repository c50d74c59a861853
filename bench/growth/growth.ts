/* Runs `npm run bench:growth`; its --help describes the options. */

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { isGiven, names, runCommand, text, UsageError } from "../../trials/harness/command-line.ts";
import { machineNow } from "../../trials/harness/machine.ts";
import { checkBars, publishTables } from "../../trials/harness/table.ts";
import { COMMAND_RUNS } from "./commands.ts";
import { buildData, type GrowthData, requireDisk } from "./data.ts";
import { type GrowthCase, growthCases, MANY_GETS, manyGets } from "./operations.ts";
import { bytesOf, DATABASES, type DatabaseName, rowsOf, type Scale, SCALES } from "./rows.ts";
import { type GrowthServer, startGrowthServer } from "./server.ts";
import { type Cost, growthBars, growthTable, type GrowthResults, type GrowthRow } from "./tables.ts";

const HELP = `Usage: npm run bench:growth [-- OPTIONS]

Measures what every operation and command costs with 1, 10 and 100 times the data: with every set of the filters of
clients, and every filter of operators alone and in pairs. It prints the processor time, the pages or blocks that are
read, the bytes of the response, and how long a second client waits. 1× is 100,000 pets. 100× needs 7 GB of free disk on
SQLite and 20 GB on PostgreSQL, and up to an hour.

  --scale LIST     Some of ${SCALES.join(", ")}, with commas between (default: all). Growth is that from the first.
  --database NAME  ${DATABASES.join(" or ")} (default: sqlite)
  --only NAME      Only operations and commands with this text in their names
  --json FILE      Also write the figures of each request to a file
  --docs           Also write the tables to bench/results.md
  --check          Exit with 1 if a row grows by more than its bound
  --help           Show this
`;

function announce(what: string): void {
  process.stderr.write(`${Math.round(performance.now() / 1_000)} s: ${what}\n`);
}

/** Takes the figures of all requests and commands with the data of one scale. */
async function measureScale(
  data: GrowthData,
  only: string,
  add: (row: Omit<GrowthRow, "costs">, cost: Cost) => void,
): Promise<number> {
  const server = await startGrowthServer(data);
  const control = await server.control();
  const facts = { rows: data.rows, keys: data.keys, tokens: server.tokens, now: Date.now() };
  const cases = growthCases(facts);
  const chosen = cases.filter(({ operation }) => operation.includes(only));
  let announced = "";
  for (const each of cases) {
    if (!chosen.some((other) => other === each || isNeeded(each, other))) continue;
    const { side, operation, name } = each;
    if (announced !== side + operation) announce(`${data.scale}×, ${side}: ${operation}`);
    announced = side + operation;
    add({ side, operation, name }, await server.costOf(each));
  }
  if (MANY_GETS.operation.includes(only)) {
    announce(`${data.scale}×, client: ${MANY_GETS.operation}`);
    add(MANY_GETS, await server.costOfMany(manyGets(data.keys.inTurn)));
  }
  await measureCommands(data, server, { only, add });
  await server.stop();
  return control;
}

const isNeeded = ({ side, operation }: GrowthCase, by: GrowthCase) =>
  by.side === side && by.needs === operation;

async function measureCommands(
  { scale, storage, keys, newStorage }: GrowthData,
  server: GrowthServer,
  { only, add }: { only: string; add: (row: Omit<GrowthRow, "costs">, cost: Cost) => void },
): Promise<void> {
  const directory = temporaryDirectory("growth-files");
  const petsFile = join(directory, "pets.csv");
  const pets = Array.from({ length: 10_000 }, (_, i) => `Rex,${i % 90},available\n`);
  writeFileSync(petsFile, `name,categoryId,status\n${pets.join("")}`);
  const backups = join(directory, "backups");
  const facts = { storage, directory, petsFile, backups, newStorage, secret: keys.other };
  const runs = Object.entries(COMMAND_RUNS);
  const chosen = runs.filter(([operation]) => operation.includes(only));
  for (const [operation, run] of runs) {
    if (typeof run === "string") {
      if (operation.includes(only)) announce(`${scale}×, command: ${operation} is not run: it ${run}`);
      continue;
    }
    const isNeeded = chosen.some(([, other]) => typeof other !== "string" && other.needs === operation);
    if (!isNeeded && !operation.includes(only)) continue;
    announce(`${scale}×, command: ${operation}`);
    add({ side: "command", operation, name: "" }, await server.costOfCommand(operation, run, facts));
  }
  rmSync(directory, { recursive: true, force: true });
}

async function measure(
  scales: readonly Scale[],
  database: DatabaseName,
  only: string,
): Promise<GrowthResults> {
  const rows = new Map<string, GrowthRow & { readonly costs: Map<Scale, Cost> }>();
  const controls = new Map<Scale, number>();
  for (const scale of scales) {
    announce(`${scale}×: about ${Math.round(bytesOf(scale, database) / 1e6)} MB of data`);
    const data = await buildData(scale, database, (what) => announce(`${scale}×: filling ${what}`));
    const control = await measureScale(data, only, (row, cost) => {
      const id = JSON.stringify(row);
      const known = rows.get(id) ?? { ...row, costs: new Map<Scale, Cost>() };
      known.costs.set(scale, cost);
      rows.set(id, known);
    });
    controls.set(scale, control);
    await data.postgres?.discard();
    rmSync(data.directory, { recursive: true, force: true });
  }
  return { database, scales, rows: [...rows.values()], controls };
}

function publish(results: GrowthResults, docs: boolean, machine: string): void {
  const { pets, orders, keys, audit } = rowsOf(1);
  const counts = [pets, orders, keys, audit].map((count) => count.toLocaleString("en"));
  const note = `1× is ${counts[0]} pets of which about 95 % are sold and half are in one category, ${counts[1]} orders, ${counts[2]} keys and ${counts[3]} audit entries. Before the run: ${machine}.`;
  const tables = [
    growthTable(results, "client", note),
    growthTable(results, "operator"),
    growthTable(results, "command"),
  ];
  const filled = tables.filter(({ rows }) => rows.length > 0);
  publishTables(filled, docs && { file: "bench/results.md", name: `growth-${results.database}` });
}

await runCommand({
  name: "bench:growth",
  help: HELP,
  flags: {
    scale: names(SCALES.map(String)),
    database: names(DATABASES),
    only: text,
    json: text,
    docs: isGiven,
    check: isGiven,
  },
  maxMinutes: 120,
  async main({ scale, database, only = "", json, docs, check }) {
    const scales = SCALES.filter((each) => scale?.includes(String(each)) ?? true);
    const [chosen = "sqlite", ...more] = database ?? [];
    if (more.length > 0) throw new UsageError("--database: one at a time");
    if (docs && only !== "") throw new UsageError("--docs needs all operations, so no --only");
    requireDisk(scales, chosen);
    const machine = machineNow();
    const results = await measure(scales, chosen, only);
    if (results.rows.length === 0)
      throw new UsageError(`--only: no operation or command has "${only}" in its name`);
    if (json !== undefined) {
      const rows = results.rows.map((row) => ({ ...row, costs: Object.fromEntries(row.costs) }));
      writeFileSync(json, `${JSON.stringify(rows, undefined, 1)}\n`);
    }
    publish(results, docs, machine);
    return checkBars(growthBars(results), check);
  },
});
