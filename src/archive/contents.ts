/** The databases of an environment, and what they contain. */
import type { StorageConfig } from "../config/config.ts";
import { postgresOf } from "../postgres-options.ts";
import { type Counters, type Table, type TableReader, TABLES, type TableStore } from "../store/tables.ts";

/** The database with the pets, orders and keys. Servers may be running on it. */
export async function tableStoreOf(storage: StorageConfig): Promise<TableStore> {
  if (storage.databaseUrl === undefined) {
    const { directory } = storage;
    directory.prepare();
    directory.rejectLostDatabase();
    const { sqliteTables } = await import("../store/sqlite/tables.ts");
    return sqliteTables(directory.files.store);
  }
  const { postgresTables } = await import("../store/postgres/tables.ts");
  return postgresTables(postgresOf(storage));
}

/** How far long work is. */
export interface WorkProgress {
  /** What is being done, such as `copying`. */
  readonly step?: string;
  /** Rows or bytes of this step; undefined if they cannot be counted. */
  readonly done?: number;
  /** Of this step, from 0 to 1; undefined if the end is not known. */
  readonly share?: number;
}

export type OnProgress = (progress: WorkProgress) => void;

interface TableSum {
  readonly rows: number;
  /** The sum of the hashes of all rows, the same in any order. */
  readonly checksum: string;
}

/** What a database contains, in a form that can be compared with another database. */
export interface Contents {
  readonly tables: Readonly<Record<string, TableSum>>;
  readonly counters: Counters;
}

/** The number of rows of each table. */
export async function countRows(reader: TableReader): Promise<Map<Table, number>> {
  const counts = new Map<Table, number>();
  for (const table of TABLES) counts.set(table, await reader.count(table));
  return counts;
}

interface ContentsOptions {
  /** Called with the number of rows so far. */
  readonly onRows?: (rows: number) => void;
  /** Of the source of a copy: leaves out the entry that the copy has added to the audit trail when it was complete. */
  readonly sourceCounters?: Counters | undefined;
}

const AUDIT = "audit";

/** Reads every row. */
export async function contentsOf(
  reader: TableReader,
  { onRows, sourceCounters }: ContentsOptions = {},
): Promise<Contents> {
  const tables: Record<string, TableSum> = {};
  const counters = { ...(await reader.counters()) };
  const lastAudit = sourceCounters?.[AUDIT];
  if (lastAudit !== undefined && counters[AUDIT] === lastAudit + 1n) counters[AUDIT] = lastAudit;
  let read = 0;
  for (const table of TABLES) {
    let count = 0;
    let sum = 0n;
    const isCut = table.name === AUDIT && lastAudit !== undefined;
    for await (const rows of reader.rows(isCut ? { ...table, where: `id <= ${lastAudit}` } : table)) {
      for (const row of rows) sum = BigInt.asUintN(64, sum + Bun.hash.xxHash64(JSON.stringify(row)));
      count += rows.length;
      onRows?.((read += rows.length));
    }
    tables[table.name] = { rows: count, checksum: sum.toString(16).padStart(16, "0") };
  }
  return { tables, counters };
}

/** The names of the tables and counters that differ. */
export function differencesBetween(a: Contents, b: Contents): string[] {
  const counters = Object.keys(a.counters).filter((name) => a.counters[name] !== b.counters[name]);
  return [
    ...Object.keys(a.tables).filter((name) => !Bun.deepEquals(a.tables[name], b.tables[name])),
    ...counters.map((name) => `the counter of ${name}`),
  ];
}

/** Identifies the contents, so that an interrupted copy continues only with the same. */
export function fingerprintOf(contents: Contents): string {
  // The version is that of the order of the rows in a table, and of what is stored beside them.
  const versioned = { version: 3, ...contents };
  return JSON.stringify(versioned, (_, value) => (typeof value === "bigint" ? String(value) : value));
}
