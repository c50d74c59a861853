/* What a database contains, and whether another one contains the same. */

import type { Counters, TableReader } from "../store/sql/table-store.ts";
import { type Row, type Table, TABLES } from "../store/sql/tables.ts";
import type { OnProgress } from "./progress.ts";

interface TableSum {
  readonly rows: number;
  /** The sum of the hashes of all rows, which is the same in any order. */
  readonly checksum: string;
}

/** The contents of a database, in a form that can be compared with another database. */
export interface Contents {
  readonly tables: Readonly<Record<string, TableSum>>;
  readonly counters: Counters;
}

/** Counts the rows of all tables. */
async function rowsIn(reader: TableReader): Promise<number> {
  let rows = 0;
  for (const table of TABLES) rows += await reader.count(table);
  return rows;
}

interface ContentsOptions {
  /** The tables that are read; all by default. */
  readonly tables?: readonly Table[];
  /** The step that is reported. */
  readonly step?: string;
  readonly onProgress?: OnProgress | undefined;
  /** Called with all rows, in the order of the tables. */
  readonly onBatch?: (table: Table, rows: readonly Row[]) => Promise<void>;
}

/** Reads every row, and counts and hashes them. */
export async function contentsOf(
  reader: TableReader,
  { tables = TABLES, step, onProgress, onBatch }: ContentsOptions = {},
): Promise<Contents> {
  const sums: Record<string, TableSum> = {};
  const counters = await reader.counters();
  const rowsInAll = onProgress ? await rowsIn(reader) : 0;
  let done = 0;
  for (const table of tables) {
    let count = 0;
    let sum = 0n;
    for await (const rows of reader.rows(table)) {
      for (const row of rows) sum = BigInt.asUintN(64, sum + Bun.hash.xxHash64(JSON.stringify(row)));
      count += rows.length;
      await onBatch?.(table, rows);
      done += rows.length;
      onProgress?.({ step, done, share: done / rowsInAll });
    }
    sums[table.name] = { rows: count, checksum: sum.toString(16).padStart(16, "0") };
  }
  return { tables: sums, counters };
}

/** The names of the tables and counters that differ. */
export function differencesBetween(a: Contents, b: Contents): string[] {
  const counters = Object.keys(a.counters).filter((name) => a.counters[name] !== b.counters[name]);
  return [
    ...Object.keys(a.tables).filter((name) => !Bun.deepEquals(a.tables[name], b.tables[name])),
    ...counters.map((name) => `the counter of ${name}`),
  ];
}
