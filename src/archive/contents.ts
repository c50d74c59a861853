/** The databases of an environment, and what they contain. */
import { pathsOf, type StorageConfig } from "../config/config.ts";
import { prepareDataDirectory, rejectLostDatabase } from "../data-directory.ts";
import type { AuditAction } from "../domain/audit.ts";
import {
  type Counters,
  type Row,
  type Table,
  type TableReader,
  TABLES,
  type TableStore,
} from "../store/tables.ts";

/** The database with the pets, orders and keys. Servers may be running on it. */
export async function tableStoreOf(storage: StorageConfig): Promise<TableStore> {
  const { databaseUrl: url, environment: schema } = storage;
  if (url === undefined) {
    prepareDataDirectory(storage);
    rejectLostDatabase(storage);
    const { sqliteTables } = await import("../store/sqlite/tables.ts");
    return sqliteTables(pathsOf(storage).store);
  }
  const { postgresTables } = await import("../store/postgres/tables.ts");
  return postgresTables({ url, schema });
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

export async function countRows(reader: TableReader): Promise<number> {
  let count = 0;
  for (const table of TABLES) count += await reader.count(table);
  return count;
}

export interface ContentsOptions {
  /** Called with the number of rows so far. */
  readonly onRows?: (rows: number) => void;
  /** Of the source of a copy: leaves out the entry that the copy has added to the audit trail when it was complete. */
  readonly sourceCounters?: Counters;
}

/** Reads every row. */
export async function contentsOf(
  reader: TableReader,
  { onRows, sourceCounters }: ContentsOptions = {},
): Promise<Contents> {
  const tables: Record<string, TableSum> = {};
  const counters = { ...(await reader.counters()) };
  const copyEntryId = sourceCounters && (sourceCounters[AUDIT] ?? 0n) + 1n;
  let read = 0;
  for (const table of TABLES) {
    let count = 0;
    let sum = 0n;
    for await (const rows of reader.rows(table)) {
      for (const row of rows) {
        if (copyEntryId !== undefined && isCopyEntry(table, row, copyEntryId)) {
          if (counters[AUDIT] === copyEntryId) counters[AUDIT]--;
          continue;
        }
        count++;
        sum = BigInt.asUintN(64, sum + Bun.hash.xxHash64(JSON.stringify(row)));
      }
      onRows?.((read += rows.length));
    }
    tables[table.name] = { rows: count, checksum: sum.toString(16).padStart(16, "0") };
  }
  return { tables, counters };
}

const AUDIT = "audit";

function isCopyEntry({ name, columns }: Table, row: Row, id: bigint): boolean {
  if (name !== AUDIT || row[0] !== String(id)) return false;
  return row[Object.keys(columns).indexOf("action")] === ("data.copied" satisfies AuditAction);
}

/** The names of the tables and counters that differ. */
export function differencesBetween(a: Contents, b: Contents): string[] {
  const tables = TABLES.map(({ name }) => name).filter(
    (name) =>
      a.tables[name]?.rows !== b.tables[name]?.rows || a.tables[name]?.checksum !== b.tables[name]?.checksum,
  );
  const counters = Object.keys(a.counters).filter((name) => a.counters[name] !== b.counters[name]);
  return [...tables, ...counters.map((name) => `the counter of ${name}`)];
}

/** Identifies the contents, so that an interrupted copy continues only with the same. */
export function fingerprintOf({ tables, counters }: Contents): string {
  return JSON.stringify({
    // Of the order of the rows in a table.
    version: 2,
    tables,
    counters: Object.entries(counters).map(([name, value]) => [name, String(value)]),
  });
}
