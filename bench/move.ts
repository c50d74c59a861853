/*
 * Measures how pets move to the other database by a backup and a restore, beside `petstore copy` of 1.3.0:
 * `npx bun bench/move.ts [--docs] [--pets N]`, about ten minutes for a million.
 */

import { SQL } from "bun";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { integer, isGiven, runCommand } from "../trials/harness/command-line.ts";
import { machineNow } from "../trials/harness/machine.ts";
import { PETSTORE } from "../trials/harness/petstore.ts";
import { postgresUrl } from "../trials/harness/postgres.ts";
import { formatCount, formatFigure, publishTables, tableOf } from "../trials/harness/table.ts";
import { insertPets } from "./servers.ts";
import { type Timed, timed } from "./timed.ts";

interface Figure extends Pick<Timed, "seconds" | "memoryMb"> {
  readonly name: string;
  /** What its files and the database grew by at most, in megabytes. */
  readonly diskMb: number;
}

interface Places {
  readonly directories: readonly string[];
  readonly url: string;
}

const LOOK_EVERY_MS = 100;

function bytesIn(directory: string): number {
  if (!existsSync(directory)) return 0;
  const sizes = readdirSync(directory).map(
    (name) => statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0,
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function databaseBytes(url: string): Promise<number> {
  await using sql = new SQL(url, { max: 1 });
  const [row] = await sql<[{ bytes: number }]>`SELECT pg_database_size(current_database())::float8 AS bytes`;
  return row.bytes;
}

/** Runs a command that writes to these places. */
async function measured(
  name: string,
  command: readonly string[],
  { directories, url }: Places,
): Promise<Figure> {
  const fileBytes = () => directories.reduce((sum, directory) => sum + bytesIn(directory), 0);
  const before = [fileBytes(), await databaseBytes(url)] as const;
  let most = before[0];
  const timer = setInterval(() => (most = Math.max(most, fileBytes())), LOOK_EVERY_MS);
  const { seconds, memoryMb } = await timed(command).finally(() => clearInterval(timer));
  const grown = Math.max(most, fileBytes()) - before[0] + (await databaseBytes(url)) - before[1];
  process.stderr.write(`${name}: ${seconds.toFixed(1)} s\n`);
  return { name, seconds, memoryMb, diskMb: grown / 1e6 };
}

/** Makes a data directory with pets in tables that a command makes. */
async function newData(command: readonly string[], pets: number): Promise<string> {
  const data = temporaryDirectory("bench-move");
  await timed([...command, "--data", data]);
  await insertPets(join(data, "production.db"), pets);
  return data;
}

async function byBackup(pets: number): Promise<Figure[]> {
  const data = await newData([...PETSTORE, "migrate"], pets);
  const [backups, later] = [temporaryDirectory("backups"), temporaryDirectory("backups")];
  const restored = temporaryDirectory("restored");
  const url = await postgresUrl();
  const places = { directories: [data, backups, later, restored], url };
  const steps = [
    ["petstore backup of SQLite", ["backup", backups, "--data", data]],
    ["petstore restore to PostgreSQL", ["restore", backups, "--data", data, "--database-url", url]],
    ["petstore backup of PostgreSQL", ["backup", later, "--data", data, "--database-url", url]],
    ["petstore restore to SQLite", ["restore", later, "--data", restored]],
  ] as const;
  const figures: Figure[] = [];
  for (const [name, args] of steps) figures.push(await measured(name, [...PETSTORE, ...args], places));
  return figures;
}

/** The program of 1.3.0, with which the upgrade is tested. */
const COPY_PROGRAM = "../test/engines/upgrade/fixtures/1.3.0/petstore.js.gz";

async function byCopy(pets: number): Promise<Figure[]> {
  const path = join(temporaryDirectory("earlier-release"), "petstore.js");
  writeFileSync(path, gunzipSync(readFileSync(join(import.meta.dir, COPY_PROGRAM))));
  const program = [process.execPath, "--no-env-file", "--config=/dev/null", path];
  const data = await newData([...program, "keys", "create", "--name", "bench", "--plan", "free"], pets);
  const [back, url] = [temporaryDirectory("copied"), await postgresUrl()];
  const places = { directories: [data, back], url };
  const copy = (name: string, ...args: string[]) => measured(name, [...program, "copy", ...args], places);
  return [
    await copy("petstore copy of 1.3.0 to PostgreSQL", "--to", url, "--data", data),
    await copy("petstore copy of 1.3.0 to SQLite", "--from", url, "--data", back),
  ];
}

await runCommand({
  name: "bench/move",
  flags: { docs: isGiven, pets: integer(1_000_000, 10_000_000) },
  maxMinutes: 30,
  async main({ docs, pets }) {
    const before = machineNow();
    const figures = [...(await byBackup(pets)), ...(await byCopy(pets))];
    const table = tableOf(`Moving ${formatCount(pets)} pets`, figures, {
      "": ({ name }) => name,
      seconds: ({ seconds }) => formatFigure(seconds),
      "memory, MB": ({ memoryMb }) => formatFigure(memoryMb),
      "disk, MB": ({ diskMb }) => formatFigure(diskMb),
    });
    const note = `One run. PostgreSQL runs beside it, with fsync off, as in the tests. Disk is what the files and the database grew by at most, without the log of PostgreSQL. Before the run: ${before}.`;
    publishTables([{ ...table, note }], docs && { file: "bench/results.md", name: "move" });
    return 0;
  },
});
