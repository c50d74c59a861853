import { copyFileSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../src/store/sqlite/connection.ts";
import { MIGRATIONS } from "../src/store/sqlite/migrations.ts";
import type { Processes } from "./processes.ts";

const NAMES = "Rex Mia Luna Bello Minka Oskar Nala Balu Felix Kira Rocky Lilly Simba Emma Bruno Socke".split(
  " ",
);

/** A quarter each of the three statuses, and a quarter without one. */
function insertSql(animals: number): string {
  const names = NAMES.map((name, n) => `(${n}, '${name}')`).join(", ");
  return `
    CREATE TEMP TABLE seed_names (n INTEGER PRIMARY KEY, name TEXT);
    INSERT INTO seed_names VALUES ${names};
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${animals})
    INSERT INTO pets (name, category_id, status)
    SELECT (SELECT name FROM seed_names WHERE seed_names.n = numbers.n % ${NAMES.length}), n % 1000,
           CASE n % 4 WHEN 0 THEN 'available' WHEN 1 THEN 'pending' WHEN 2 THEN 'sold' END
    FROM numbers;
    DROP TABLE seed_names;`;
}

/** A database with so many animals, kept from run to run for as long as the schema stays what it is. */
export async function seededDatabase(animals: number, { folder, processes }: SeedPlace): Promise<string> {
  const schema = Bun.hash(JSON.stringify(MIGRATIONS) + insertSql(animals)).toString(36);
  const kept = join(tmpdir(), `petstore-bench-${userInfo().uid}`);
  const path = join(kept, `${animals}-${schema}.db`);
  if (existsSync(path)) return path;
  mkdirSync(kept, { recursive: true, mode: 0o700 });
  const unfinished = join(folder, `seed-${animals}.db`);
  // In a process of its own: ten million take half a minute, in which this one must still hear Ctrl-C.
  const filling = processes.start([process.execPath, import.meta.path, unfinished, String(animals)], {
    name: "seed",
  });
  if ((await filling.child.exited) !== 0) throw new Error(`seeding failed: ${filling.complaint()}`);
  renameSync(unfinished, path);
  return path;
}

interface SeedPlace {
  readonly folder: string;
  readonly processes: Processes;
}

function fill(path: string, animals: number): void {
  const options = { synchronous: "NORMAL", cacheKiB: 262_144, busyTimeoutMs: 1_000 } as const;
  const connection = openDatabase(path, { migrations: MIGRATIONS, ...options });
  try {
    // Nobody else sees this file before it is finished, and an unfinished one is thrown away.
    connection.run("PRAGMA journal_mode = OFF");
    connection.run("PRAGMA synchronous = OFF");
    connection.transaction(() => connection.run(insertSql(animals)));
    connection.run("PRAGMA journal_mode = WAL");
  } finally {
    connection.close();
  }
}

/** A copy to work on, safely on disk before anything is measured. */
export function copyDatabase(from: string, to: string): void {
  copyFileSync(from, to);
  Bun.spawnSync(["sync", to]);
}

if (import.meta.main) {
  const [path = "", animals = ""] = process.argv.slice(2);
  fill(path, Number(animals));
}
