import type { Statement } from "bun:sqlite";
import {
  type KeyTotals,
  LENGTH_MS,
  partsOf,
  sumOf,
  USAGE_INTERVALS,
  type UsageInterval,
  type UsagePeriod,
} from "../../domain/usage-history.ts";
import { Turn } from "../../event-loop.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./sqlite-errors.ts";

/** Keys whose counts in one interval are one row: a row fits into a page of the database. */
const KEYS_PER_ROW = 100;
/** Rows that are read before the time is looked at. */
const ROWS_PER_READ = 5;
/** Key, admitted, limited, banned, errors. */
const FIELDS = 5;
const MAX_UINT32 = 2 ** 32 - 1;

/** FIELDS numbers of each key, one key after the other. Float64Array if one of them needs more than 32 bits. */
type PackedCounts = Uint32Array | Float64Array;

/** What sums are read by. */
interface Place {
  readonly length: number;
  readonly start: number;
}

/**
 * The counts of all keys, packed: 100 keys of one hour, 4 hours, day or 5 days are one row. Adding up 10,000 keys over
 * 24 hours reads 900 rows of them instead of 90,000 of the tables of single keys, in a fifth of the time; see
 * `bun bench/usage-history.ts`.
 */
export class UsageTotals {
  readonly #select: Statement<PackedRow, [number, number, number]>;
  readonly #save: Statement<unknown, [number, number, number, number, Uint8Array]>;
  readonly #selectAfter: Statement<PackedRow & { block: number }, [number, number, number, number]>;
  readonly #delete: Statement<unknown, [number, number, number]>;

  constructor(connection: Connection) {
    this.#select = connection
      .prepare<PackedRow, [number, number, number]>(
        `SELECT number_bytes AS numberBytes, counts FROM usage_totals
         WHERE length = ? AND start = ? AND block = ?`,
      )
      .safeIntegers(false);
    this.#save = connection.prepare(`INSERT INTO usage_totals (length, start, block, number_bytes, counts)
      VALUES (?, ?, ?, ?, ?) ON CONFLICT (length, start, block)
      DO UPDATE SET number_bytes = excluded.number_bytes, counts = excluded.counts`);
    this.#selectAfter = connection
      .prepare<PackedRow & { block: number }, [number, number, number, number]>(
        `SELECT block, number_bytes AS numberBytes, counts FROM usage_totals
         WHERE length = ? AND start = ? AND block > ? ORDER BY block LIMIT +?`,
      )
      .safeIntegers(false);
    this.#delete = connection.prepare(`DELETE FROM usage_totals WHERE rowid IN
      (SELECT rowid FROM usage_totals WHERE length = ? AND start < ? ORDER BY start, block LIMIT +?)`);
  }

  /** Adds to the interval and to its sum. */
  add(by: UsageInterval, start: number, keys: readonly KeyTotals[]): void {
    for (const [block, some] of Map.groupBy(keys, ({ keyId }) => blockOf(keyId))) {
      this.#addTo({ length: LENGTH_MS[by], start }, block, some);
      this.#addTo(sumOf(by, start), block, some);
    }
  }

  #addTo({ length, start }: Place, block: number, keys: readonly KeyTotals[]): void {
    const stored = this.#select.get(length, start, block);
    const counts = withAdded(stored === null ? new Uint32Array() : unpacked(stored), keys);
    const bytes = new Uint8Array(counts.buffer, counts.byteOffset, counts.byteLength);
    this.#save.run(length, start, block, counts.BYTES_PER_ELEMENT, bytes);
  }

  /**
   * The sums of each key that has counts in the period, in lists of up to 100. Other work of the event loop goes on
   * meanwhile.
   */
  async sum(
    period: UsagePeriod,
    bounds: { readonly first: number; readonly last: number },
  ): Promise<Iterable<readonly KeyTotals[]>> {
    const { intervals, sums } = partsOf(period, bounds);
    const totals = new BlockTotals();
    const turn = new Turn();
    for (const start of intervals) await this.#read({ length: LENGTH_MS[period.by], start }, totals, turn);
    for (const start of sums) await this.#read(sumOf(period.by, start), totals, turn);
    return totals;
  }

  async #read({ length, start }: Place, totals: BlockTotals, turn: Turn): Promise<void> {
    let last = -1;
    for (;;) {
      const rows = translateErrors(() => this.#selectAfter.all(length, start, last, ROWS_PER_READ));
      for (const row of rows) totals.add(row.block, unpacked(row));
      if (turn.isOver) await turn.next();
      if (rows.length < ROWS_PER_READ) return;
      last = rows.at(-1)?.block ?? last;
    }
  }

  /** Deletes intervals and sums that start before a time. Returns whether there are more. */
  deleteBefore(by: UsageInterval, start: number, limit: number): boolean {
    const lengths = [LENGTH_MS[by], sumOf(by, start).length];
    const deleted = lengths.map((length) => this.#delete.run(length, start, limit).changes);
    return deleted.includes(limit);
  }
}

interface PackedRow {
  /** Of each number: 4 or 8. */
  readonly numberBytes: number;
  readonly counts: Uint8Array;
}

function unpacked({ numberBytes, counts: { buffer, byteOffset, byteLength } }: PackedRow): PackedCounts {
  const length = byteLength / numberBytes;
  return numberBytes === Uint32Array.BYTES_PER_ELEMENT
    ? new Uint32Array(buffer, byteOffset, length)
    : new Float64Array(buffer, byteOffset, length);
}

function blockOf(keyId: number): number {
  return Math.floor(keyId / KEYS_PER_ROW);
}

/** Changes the stored counts, or returns larger ones. */
function withAdded(stored: PackedCounts, keys: readonly KeyTotals[]): PackedCounts {
  let counts = stored;
  for (const { keyId, admitted, limited, banned, errors } of keys) {
    let at = 0;
    while (at < counts.length && counts[at] !== keyId) at += FIELDS;
    const field = (offset: number) => counts[at + offset] ?? 0;
    const sums = [keyId, field(1) + admitted, field(2) + limited, field(3) + banned, field(4) + errors];
    if (at === counts.length) counts = withLength(counts, at + FIELDS);
    if (sums.some((sum) => sum > MAX_UINT32)) counts = new Float64Array(counts);
    counts.set(sums, at);
  }
  return counts;
}

function withLength(counts: PackedCounts, length: number): PackedCounts {
  const longer = counts instanceof Uint32Array ? new Uint32Array(length) : new Float64Array(length);
  longer.set(counts);
  return longer;
}

/** Sums of the keys by their block. */
class BlockTotals implements Iterable<readonly KeyTotals[]> {
  /** FIELDS numbers for each of the keys that a block can have; the first is 0 without counts. */
  readonly #blocks = new Map<number, Float64Array>();

  add(block: number, counts: PackedCounts): void {
    let sums = this.#blocks.get(block);
    if (sums === undefined) {
      sums = new Float64Array(KEYS_PER_ROW * FIELDS);
      this.#blocks.set(block, sums);
    }
    const first = block * KEYS_PER_ROW;
    for (let from = 0; from < counts.length; from += FIELDS) {
      const keyId = counts[from] ?? 0;
      const to = (keyId - first) * FIELDS;
      sums[to] = keyId;
      for (let field = 1; field < FIELDS; field++) {
        sums[to + field] = (sums[to + field] ?? 0) + (counts[from + field] ?? 0);
      }
    }
  }

  *[Symbol.iterator](): Generator<readonly KeyTotals[]> {
    for (const sums of this.#blocks.values()) yield totalsIn(sums);
  }
}

function totalsIn(sums: Float64Array): KeyTotals[] {
  const totals: KeyTotals[] = [];
  for (let at = 0; at < sums.length; at += FIELDS) {
    const keyId = sums[at] ?? 0;
    if (keyId === 0) continue;
    totals.push({
      keyId,
      admitted: sums[at + 1] ?? 0,
      limited: sums[at + 2] ?? 0,
      banned: sums[at + 3] ?? 0,
      errors: sums[at + 4] ?? 0,
    });
  }
  return totals;
}

/** Packs the counts of the tables of single keys: for the migration of a database that has none. */
export function packUsage(connection: Connection): void {
  const totals = new UsageTotals(connection);
  for (const by of USAGE_INTERVALS) {
    const table = by === "hour" ? "usage_hours" : "usage_days";
    const selectStarts = connection
      .prepare<{ start: number }, []>(`SELECT DISTINCT start FROM ${table}`)
      .safeIntegers(false);
    const select = connection
      .prepare<KeyTotals, [number]>(
        `SELECT key_id AS keyId, admitted, limited, banned, errors FROM ${table} WHERE start = ?`,
      )
      .safeIntegers(false);
    for (const { start } of selectStarts.all()) totals.add(by, start, select.all(start));
    selectStarts.finalize();
    select.finalize();
  }
}
