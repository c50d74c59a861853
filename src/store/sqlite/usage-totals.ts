import {
  byRequests,
  type KeyTotals,
  type KeyTotalsQuery,
  LENGTH_MS,
  partsOf,
  sumOf,
  USAGE_INTERVALS,
  type UsageInterval,
} from "../../domain/usage-history.ts";
import { TimeSlice } from "../../event-loop.ts";
import { rowsOf, type Steps } from "../statements.ts";
import { USAGE } from "../tables.ts";
import type { Bounds, UsageSums } from "../usage-history.ts";
import { type Connection, SQLITE_DIALECT } from "./connection.ts";

/** Keys whose counts in one interval are one row: a row fits into a page of the database. */
const KEYS_PER_ROW = 100;
/** Rows that are read before the time is looked at. */
const ROWS_PER_READ = 5;
/** Key, admitted, limited, banned, errors. */
const FIELDS = 5;
const MAX_UINT32 = 2 ** 32 - 1;

/** FIELDS numbers of each key, one key after the other. Float64Array if one of them needs more than 32 bits. */
type PackedCounts = Uint32Array | Float64Array;

/** An interval or a sum of several, by its length and its start. */
interface StoredSum {
  readonly length: number;
  readonly start: number;
}

const SELECT_TOTALS = `SELECT block, number_bytes AS numberBytes, counts FROM usage_totals
  WHERE length = ? AND start = ? AND block = ?`;
const SELECT_TOTALS_AFTER = `SELECT block, number_bytes AS numberBytes, counts FROM usage_totals
  WHERE length = ? AND start = ? AND block > ? ORDER BY block LIMIT +?`;
const SAVE_TOTALS = `INSERT INTO usage_totals (length, start, block, number_bytes, counts)
  VALUES (?, ?, ?, ?, ?) ON CONFLICT (length, start, block)
  DO UPDATE SET number_bytes = excluded.number_bytes, counts = excluded.counts`;
const DELETE_TOTALS = SQLITE_DIALECT.deleteFirst({
  table: "usage_totals",
  where: "length = ? AND start < ?",
  order: "length, start, block",
});
/** Each has the counts of up to 100 keys. */
const DELETED_AT_ONCE = 50;

/**
 * The counts of all keys, packed: 100 keys of one hour, 4 hours, day or 5 days are one row. Adding up 10,000 keys over
 * 24 hours reads 900 rows of them instead of 90,000 of the tables of single keys, in a fifth of the time; see
 * `npm run bench:admin`.
 */
export class SqliteUsageTotals implements UsageSums {
  /** Its integers are numbers. */
  constructor(private readonly connection: Connection) {}

  /** Adds to the interval and to its sum. */
  *add(by: UsageInterval, start: number, keys: readonly KeyTotals[]): Steps<void> {
    for (const [block, some] of Map.groupBy(keys, ({ keyId }) => blockOf(keyId))) {
      yield* addToRow({ length: LENGTH_MS[by], start }, block, some);
      yield* addToRow(sumOf(by, start), block, some);
    }
  }

  /** Other work of the event loop goes on meanwhile. */
  async read(query: KeyTotalsQuery, bounds: Bounds): Promise<readonly KeyTotals[]> {
    const { intervals, sums } = partsOf(query, bounds);
    const parts = [
      ...intervals.map((start) => ({ length: LENGTH_MS[query.by], start })),
      ...sums.map((start) => sumOf(query.by, start)),
    ];
    const totals = new Map<number, MutableTotals>();
    const slice = new TimeSlice();
    for (const part of parts) await this.#addPart(part, totals, slice);
    await slice.next();
    return mostRequests(totals.values(), query.limit);
  }

  async #addPart(
    { length, start }: StoredSum,
    totals: Map<number, MutableTotals>,
    slice: TimeSlice,
  ): Promise<void> {
    let last = -1;
    for (;;) {
      const rows = this.connection.all<PackedRow>(SELECT_TOTALS_AFTER, length, start, last, ROWS_PER_READ);
      for (const row of rows) addTo(totals, unpacked(row));
      if (slice.isOver) await slice.next();
      if (rows.length < ROWS_PER_READ) return;
      last = rows.at(-1)?.block ?? last;
    }
  }

  *deleteBefore(by: UsageInterval, start: number): Steps<boolean> {
    let hasMore = false;
    for (const length of [LENGTH_MS[by], sumOf(by, start).length]) {
      const deleted = yield* rowsOf(DELETE_TOTALS, length, start, DELETED_AT_ONCE);
      hasMore ||= deleted.length === DELETED_AT_ONCE;
    }
    return hasMore;
  }
}

function* addToRow({ length, start }: StoredSum, block: number, keys: readonly KeyTotals[]): Steps<void> {
  const [stored] = yield* rowsOf<PackedRow>(SELECT_TOTALS, length, start, block);
  const counts = withAdded(stored ? unpacked(stored) : new Uint32Array(), keys);
  const bytes = new Uint8Array(counts.buffer);
  yield* rowsOf(SAVE_TOTALS, length, start, block, counts.BYTES_PER_ELEMENT, bytes);
}

/** To sort 10,000 keys takes 7 ms after a start, in which requests wait; this takes 1 ms. */
function mostRequests(totals: Iterable<KeyTotals>, limit = Infinity): readonly KeyTotals[] {
  let first: KeyTotals[] = [];
  let last: KeyTotals | undefined;
  for (const total of totals) {
    if (last && byRequests(last, total) <= 0) continue;
    if (first.push(total) < 2 * limit) continue;
    first = first.toSorted(byRequests).slice(0, limit);
    last = first.at(-1);
  }
  return first.toSorted(byRequests).slice(0, limit);
}

interface PackedRow {
  readonly block: number;
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

function withAdded(stored: PackedCounts, keys: readonly KeyTotals[]): PackedCounts {
  const totals = new Map<number, MutableTotals>();
  addTo(totals, stored);
  for (const key of keys) addTo(totals, fieldsOf(key));
  const counts = [...totals.values()].flatMap(fieldsOf);
  return counts.some((count) => count > MAX_UINT32) ? new Float64Array(counts) : new Uint32Array(counts);
}

function fieldsOf({ keyId, admitted, limited, banned, errors }: KeyTotals): number[] {
  return [keyId, admitted, limited, banned, errors];
}

type MutableTotals = { -readonly [Field in keyof KeyTotals]: KeyTotals[Field] };

function addTo(totals: Map<number, MutableTotals>, counts: ArrayLike<number>): void {
  for (let at = 0; at < counts.length; at += FIELDS) {
    const keyId = counts[at] ?? 0;
    let sums = totals.get(keyId);
    if (sums === undefined) {
      sums = { keyId, admitted: 0, limited: 0, banned: 0, errors: 0 };
      totals.set(keyId, sums);
    }
    sums.admitted += counts[at + 1] ?? 0;
    sums.limited += counts[at + 2] ?? 0;
    sums.banned += counts[at + 3] ?? 0;
    sums.errors += counts[at + 4] ?? 0;
  }
}

/** Packs the counts of the tables of single keys, for a database that has none. Its integers are numbers. */
export function packUsage(connection: Connection): void {
  const totals = new SqliteUsageTotals(connection);
  for (const by of USAGE_INTERVALS) {
    const { name } = USAGE[by];
    const select = `SELECT key_id AS keyId, admitted, limited, banned, errors FROM ${name} WHERE start = ?`;
    for (const { start } of connection.all<{ start: number }>(`SELECT DISTINCT start FROM ${name}`)) {
      connection.runAll(() => totals.add(by, start, connection.all<KeyTotals>(select, start)));
    }
  }
}
