import type { Statement } from "bun:sqlite";
import type { UsageHistoryStore } from "../../domain/ports.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import {
  byRequests,
  DEPRECATED_OPERATIONS,
  type KeyCounts,
  type KeyTotals,
  type KeyTotalsQuery,
  LENGTH_MS,
  partsOf,
  retainedSince,
  startOf,
  startsOf,
  sumOf,
  USAGE_INTERVALS,
  type UsageBatch,
  type UsageInterval,
  type UsagePeriod,
  type UsageQuery,
  type UsageRow,
} from "../../domain/usage-history.ts";
import { forEachInTimeSlices, TimeSlice } from "../../event-loop.ts";
import { addOperations, deprecatedIn, encodeOperations, type StoredCounts, usageRowsOf } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./errors.ts";

/** Hours or days of one key that are read before the time is looked at. */
const STARTS_PER_LOOK = 8;
/** Rows that are deleted in one turn of the event loop: one to two milliseconds. */
const DELETED_PER_TURN = 500;
/** Each has the counts of up to 100 keys. */
const TOTALS_DELETED_PER_TURN = 50;

/**
 * Has a connection of its own, whose `synchronous` is NORMAL: adding counts does not wait for the disk, and so delays
 * no request. What was added survives a crash of the process; a power failure may lose the last seconds.
 */
export class SqliteUsageHistoryStore implements UsageHistoryStore {
  readonly #tables: Readonly<Record<UsageInterval, UsageTable>>;
  readonly #totals: UsageTotals;
  readonly #insertBatch: Statement<unknown, [string, number, number]>;
  readonly #deleteBatches: Statement<unknown, [number]>;
  readonly #setLastUsed: Statement<unknown, [number, number]>;
  readonly #selectLastUsed: Statement<{ lastUsedAt: number }, [number]>;
  readonly #setDeprecatedUse: Statement<unknown, [string, number, number]>;
  readonly #countDeprecatedUse: Statement<{ count: number }, [...string[], number]>;

  constructor(private readonly connection: Connection) {
    this.#tables = {
      hour: new UsageTable(connection, "hour"),
      day: new UsageTable(connection, "day"),
    };
    this.#totals = new UsageTotals(connection);
    this.#insertBatch =
      connection.prepare(`INSERT INTO usage_batches (writer, sequence, hour) VALUES (?, ?, ?)
      ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, hour = excluded.hour
      WHERE sequence < excluded.sequence`);
    this.#deleteBatches = connection.prepare("DELETE FROM usage_batches WHERE hour < ?");
    this.#setLastUsed = connection.prepare(`INSERT INTO key_last_used (key_id, last_used_at) VALUES (?, ?)
      ON CONFLICT (key_id) DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)`);
    this.#selectLastUsed = connection.prepareNumbers(
      "SELECT last_used_at AS lastUsedAt FROM key_last_used WHERE key_id = ?",
    );
    this.#setDeprecatedUse =
      connection.prepare(`INSERT INTO deprecated_use (operation, key_id, last_used_at) VALUES (?, ?, ?)
      ON CONFLICT (operation, key_id) DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)`);
    this.#countDeprecatedUse =
      connection.prepareNumbers(`SELECT count(DISTINCT key_id) AS count FROM deprecated_use
         WHERE operation IN (${DEPRECATED_OPERATIONS.map(() => "?").join(", ")}) AND last_used_at >= ?`);
  }

  async addUsage({ writer, sequence, hour, keys }: UsageBatch): Promise<void> {
    const day = startOf("day", hour);
    await this.connection.transactionWhenUnlocked(() => {
      if (this.#insertBatch.run(writer, sequence, hour).changes === 0) return;
      for (const counts of keys) {
        this.#tables.hour.add(hour, counts);
        this.#tables.day.add(day, counts);
        this.#setLastUsed.run(counts.keyId, counts.lastUsedAt);
        for (const operation of deprecatedIn(counts)) {
          this.#setDeprecatedUse.run(operation, counts.keyId, counts.lastUsedAt);
        }
      }
      this.#totals.add("hour", hour, keys);
      this.#totals.add("day", day, keys);
    });
  }

  readUsage(query: UsageQuery): Promise<readonly UsageRow[]> {
    return this.#tables[query.by].read(query);
  }

  async usageByKey(query: KeyTotalsQuery): Promise<readonly KeyTotals[]> {
    const totals = await this.#totals.sum(query, this.#tables[query.by].bounds());
    return totals.toSorted(byRequests).slice(0, query.limit);
  }

  lastUsed(keyIds: readonly number[]): ReadonlyMap<number, number> {
    return translateErrors(() => {
      const times = keyIds.map((keyId) => [keyId, this.#selectLastUsed.get(keyId)?.lastUsedAt] as const);
      return new Map(times.flatMap(([keyId, time]) => (time === undefined ? [] : [[keyId, time] as const])));
    });
  }

  countDeprecatedUse(since: number): number {
    const row = translateErrors(() => this.#countDeprecatedUse.get(...DEPRECATED_OPERATIONS, since));
    return row?.count ?? 0;
  }

  async deleteOldUsage(now: number): Promise<boolean> {
    return this.connection.transactionWhenUnlocked(() => {
      this.#deleteBatches.run(now - DAY_MS);
      // All of them delete some.
      const hasMore = USAGE_INTERVALS.map((by) => {
        const start = retainedSince(by, now);
        const hasMoreTotals = this.#totals.deleteBefore(by, start, TOTALS_DELETED_PER_TURN);
        return this.#tables[by].deleteBefore(start) || hasMoreTotals;
      });
      return hasMore.includes(true);
    });
  }

  close(): void {
    this.connection.close();
  }
}

type Counts = [admitted: number, limited: number, banned: number, errors: number];

/** The counts of single keys in all hours or in all days, in order of the interval and the key. */
class UsageTable {
  readonly #selectOperations: Statement<{ operations: string }, [number, number]>;
  readonly #add: Statement<unknown, [number, number, ...Counts, string]>;
  readonly #selectBounds: Statement<{ first: number | null; last: number | null }, []>;
  readonly #select: Statement<StoredCounts, [number, number]>;
  readonly #delete: Statement<unknown, [number, number]>;

  constructor(connection: Connection, by: UsageInterval) {
    const table = by === "hour" ? "usage_hours" : "usage_days";
    this.#selectOperations = connection.prepare(
      `SELECT operations FROM ${table} WHERE start = ? AND key_id = ?`,
    );
    this.#add = connection.prepare(`INSERT INTO ${table}
      (start, key_id, admitted, limited, banned, errors, operations) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (start, key_id) DO UPDATE SET admitted = admitted + excluded.admitted,
        limited = limited + excluded.limited, banned = banned + excluded.banned,
        errors = errors + excluded.errors, operations = excluded.operations`);
    this.#selectBounds = connection.prepareNumbers(
      `SELECT (SELECT min(start) FROM ${table}) AS first, (SELECT max(start) FROM ${table}) AS last`,
    );
    this.#select =
      connection.prepareNumbers(`SELECT start, admitted, limited, banned, errors, operations FROM ${table}
         WHERE start = ? AND key_id = ?`);
    this.#delete = connection.prepare(`DELETE FROM ${table} WHERE (start, key_id) IN
      (SELECT start, key_id FROM ${table} WHERE start < ? ORDER BY start, key_id LIMIT +?)`);
  }

  add(start: number, counts: KeyCounts): void {
    const { keyId, admitted, limited, banned, errors } = counts;
    const stored = this.#selectOperations.get(start, keyId);
    const operations =
      stored === null ? encodeOperations(counts.byOperation) : addOperations(stored.operations, counts);
    this.#add.run(start, keyId, admitted, limited, banned, errors, operations);
  }

  /** 400 days take some milliseconds, in which other work of the event loop goes on. */
  async read(query: UsageQuery): Promise<readonly UsageRow[]> {
    const rows: UsageRow[] = [];
    const addRowsOf = (start: number) => {
      const stored = translateErrors(() => this.#select.get(start, query.keyId));
      if (stored !== null) rows.push(...usageRowsOf(query.keyId, stored));
    };
    await forEachInTimeSlices(startsOf(query, this.bounds()), addRowsOf, STARTS_PER_LOOK);
    return rows;
  }

  /** Returns whether there are more. */
  deleteBefore(start: number): boolean {
    return this.#delete.run(start, DELETED_PER_TURN).changes === DELETED_PER_TURN;
  }

  /** The starts of the first interval and of the last. Without rows, no interval is between them. */
  bounds(): { readonly first: number; readonly last: number } {
    const { first, last } = translateErrors(() => this.#selectBounds.get()) ?? { first: null, last: null };
    return { first: first ?? Infinity, last: last ?? -Infinity };
  }
}

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

/**
 * The counts of all keys, packed: 100 keys of one hour, 4 hours, day or 5 days are one row. Adding up 10,000 keys over
 * 24 hours reads 900 rows of them instead of 90,000 of the tables of single keys, in a fifth of the time; see
 * `bun bench/usage-history.ts`.
 */
class UsageTotals {
  readonly #select: Statement<PackedRow, [number, number, number]>;
  readonly #save: Statement<unknown, [number, number, number, number, Uint8Array]>;
  readonly #selectAfter: Statement<PackedRow & { block: number }, [number, number, number, number]>;
  readonly #delete: Statement<unknown, [number, number, number]>;

  constructor(connection: Connection) {
    this.#select = connection.prepareNumbers(`SELECT number_bytes AS numberBytes, counts FROM usage_totals
         WHERE length = ? AND start = ? AND block = ?`);
    this.#save = connection.prepare(`INSERT INTO usage_totals (length, start, block, number_bytes, counts)
      VALUES (?, ?, ?, ?, ?) ON CONFLICT (length, start, block)
      DO UPDATE SET number_bytes = excluded.number_bytes, counts = excluded.counts`);
    this.#selectAfter =
      connection.prepareNumbers(`SELECT block, number_bytes AS numberBytes, counts FROM usage_totals
         WHERE length = ? AND start = ? AND block > ? ORDER BY block LIMIT +?`);
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

  #addTo({ length, start }: StoredSum, block: number, keys: readonly KeyTotals[]): void {
    const stored = this.#select.get(length, start, block);
    const counts = withAdded(stored === null ? new Uint32Array() : unpacked(stored), keys);
    const bytes = new Uint8Array(counts.buffer, counts.byteOffset, counts.byteLength);
    this.#save.run(length, start, block, counts.BYTES_PER_ELEMENT, bytes);
  }

  /** The sums of each key that has counts in the period. Other work of the event loop goes on meanwhile. */
  async sum(
    period: UsagePeriod,
    bounds: { readonly first: number; readonly last: number },
  ): Promise<readonly KeyTotals[]> {
    const { intervals, sums } = partsOf(period, bounds);
    const totals = new BlockTotals();
    const turn = new TimeSlice();
    for (const start of intervals) await this.#read({ length: LENGTH_MS[period.by], start }, totals, turn);
    for (const start of sums) await this.#read(sumOf(period.by, start), totals, turn);
    return totals.list(turn);
  }

  async #read({ length, start }: StoredSum, totals: BlockTotals, turn: TimeSlice): Promise<void> {
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
class BlockTotals {
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

  async list(turn: TimeSlice): Promise<readonly KeyTotals[]> {
    const totals: KeyTotals[] = [];
    for (const sums of this.#blocks.values()) {
      if (turn.isOver) await turn.next();
      totals.push(...totalsIn(sums));
    }
    return totals;
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
    const selectStarts = connection.prepareNumbers<{ start: number }, []>(
      `SELECT DISTINCT start FROM ${table}`,
    );
    const select = connection.prepareNumbers<KeyTotals, [number]>(
      `SELECT key_id AS keyId, admitted, limited, banned, errors FROM ${table} WHERE start = ?`,
    );
    for (const { start } of selectStarts.all()) totals.add(by, start, select.all(start));
    selectStarts.finalize();
    select.finalize();
  }
}
