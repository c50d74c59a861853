import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import { executable, PSQL, SQLITE_SHELL } from "../harness/programs.ts";

/*
 * What the tools of the databases take for the same rows: `.import` and CSV output of the SQLite shell, and COPY of
 * PostgreSQL. Their tables have the columns, constraints and index of the table of pets, except for the stored JSON,
 * which `.import` cannot leave out. `.import` reads an empty cell as an empty text, so the table allows one.
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

export interface Timed {
  readonly seconds: number;
  readonly memoryMb: number;
}

const LOOK_EVERY_MS = 20;

/** Runs a command that has to succeed. */
export async function timed(command: readonly string[], outputFile?: string): Promise<Timed> {
  const startedAt = performance.now();
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: outputFile === undefined ? "ignore" : Bun.file(outputFile),
    stderr: "pipe",
  });
  let memoryMb = 0;
  const timer = setInterval(() => (memoryMb = Math.max(memoryMb, peakMb(child.pid))), LOOK_EVERY_MS);
  const [errors, code] = await Promise.all([child.stderr.text(), child.exited]);
  clearInterval(timer);
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${errors}`);
  return { seconds: (performance.now() - startedAt) / 1_000, memoryMb };
}

/** The resource usage of a child would not do: it begins with the memory of the process that started it. */
function peakMb(pid: number): number {
  try {
    const kib = /^VmHWM:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return (Number(kib ?? 0) * 1_024) / 1e6;
  } catch {
    return 0;
  }
}

const shell = () => executable(SQLITE_SHELL);

export async function shellImport(csv: string): Promise<Timed> {
  const database = join(temporaryFolder("bench-data-shell"), "pets.db");
  await timed([shell(), database, SQLITE_TABLE]);
  return timed([shell(), database, ".mode csv", `.import --skip 1 ${csv} pets`]);
}

/** Of the database of a server. */
export async function shellExport(database: string, file: string): Promise<Timed> {
  const select = "SELECT id, name, category_id, status FROM pets";
  return timed([shell(), "-readonly", "-csv", database, select], file);
}

export async function copyImport(url: string, csv: string): Promise<Timed> {
  const psql = [executable(PSQL), "--quiet", url, "--command"];
  await timed([...psql, POSTGRES_TABLE]);
  const columns = "(id, name, category_id, status)";
  return timed([...psql, `\\copy pets_copy ${columns} FROM '${csv}' WITH (FORMAT csv, HEADER)`]);
}
