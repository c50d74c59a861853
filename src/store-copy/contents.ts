import { type Counters, type Row, type TableReader, TABLES } from "../store/tables.ts";

export interface TableSum {
  readonly rows: number;
  /** The same for the same rows in any order. */
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

/** Reads every row. */
export async function contentsOf(reader: TableReader, onRows?: (rows: number) => void): Promise<Contents> {
  const tables: Record<string, TableSum> = {};
  let read = 0;
  for (const table of TABLES) {
    const sum = new RowSum();
    for await (const rows of reader.rows(table)) {
      for (const row of rows) sum.add(row);
      onRows?.((read += rows.length));
    }
    tables[table.name] = sum.result;
  }
  return { tables, counters: await reader.counters() };
}

/** The sum of the hashes of all rows. */
class RowSum {
  #rows = 0;
  #sum = 0n;

  add(row: Row): void {
    this.#rows++;
    this.#sum = BigInt.asUintN(64, this.#sum + Bun.hash.xxHash64(JSON.stringify(row)));
  }

  get result(): TableSum {
    return { rows: this.#rows, checksum: this.#sum.toString(16).padStart(16, "0") };
  }
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
    tables,
    counters: Object.entries(counters).map(([name, value]) => [name, String(value)]),
  });
}
