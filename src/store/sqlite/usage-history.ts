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
import { USAGE } from "../tables.ts";
import type { Connection } from "./connection.ts";

/** Hours or days of one key that are read before the time is looked at. */
const STARTS_PER_LOOK = 8;
/** Rows that are deleted in one turn of the event loop: one to two milliseconds. */
const DELETED_PER_TURN = 500;
/** Each has the counts of up to 100 keys. */
const TOTALS_DELETED_PER_TURN = 50;

const INSERT_BATCH = `INSERT INTO usage_batches (writer, sequence, hour) VALUES (?, ?, ?)
  ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, hour = excluded.hour
  WHERE sequence < excluded.sequence`;
const SET_LAST_USED = `INSERT INTO key_last_used (key_id, last_used_at) VALUES (?, ?)
  ON CONFLICT (key_id) DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)`;
const SELECT_LAST_USED = "SELECT last_used_at AS lastUsedAt FROM key_last_used WHERE key_id = ?";
const SET_DEPRECATED_USE = `INSERT INTO deprecated_use (operation, key_id, last_used_at) VALUES (?, ?, ?)
  ON CONFLICT (operation, key_id) DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)`;
const COUNT_DEPRECATED_USE = `SELECT count(DISTINCT key_id) AS count FROM deprecated_use
  WHERE operation IN (${DEPRECATED_OPERATIONS.map(() => "?").join(", ")}) AND last_used_at >= ?`;

/** Of the counts of single keys in all hours or in all days, in order of the interval and the key. */
function queriesOf(table: string) {
  return {
    select: `SELECT start, admitted, limited, banned, errors, operations FROM ${table}
      WHERE start = ? AND key_id = ?`,
    add: `INSERT INTO ${table} (start, key_id, admitted, limited, banned, errors, operations)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (start, key_id) DO UPDATE SET admitted = admitted + excluded.admitted,
        limited = limited + excluded.limited, banned = banned + excluded.banned,
        errors = errors + excluded.errors, operations = excluded.operations`,
    bounds: `SELECT (SELECT min(start) FROM ${table}) AS first, (SELECT max(start) FROM ${table}) AS last`,
    deleteBefore: `DELETE FROM ${table} WHERE (start, key_id) IN
      (SELECT start, key_id FROM ${table} WHERE start < ? ORDER BY start, key_id LIMIT +?)`,
  };
}

const QUERIES = { hour: queriesOf(USAGE.hour.name), day: queriesOf(USAGE.day.name) };

/** The starts of the first interval and of the last. Without rows, no interval is between them. */
interface Bounds {
  readonly first: number;
  readonly last: number;
}

/**
 * Has a connection of its own, whose `synchronous` is NORMAL: adding counts does not wait for the disk, and so delays
 * no request. What was added survives a crash of the process; a power failure may lose the last seconds.
 */
export class SqliteUsageHistoryStore implements UsageHistoryStore {
  readonly #totals: UsageTotals;

  /** Its integers are numbers. */
  constructor(private readonly connection: Connection) {
    this.#totals = new UsageTotals(connection);
  }

  async addUsage({ writer, sequence, hour, keys }: UsageBatch): Promise<void> {
    await this.connection.transactionWhenUnlocked(() => {
      if (this.connection.run(INSERT_BATCH, writer, sequence, hour).changes === 0) return;
      for (const by of USAGE_INTERVALS) {
        const start = startOf(by, hour);
        for (const counts of keys) this.#add(by, start, counts);
        this.#totals.add(by, start, keys);
      }
      for (const counts of keys) {
        this.connection.run(SET_LAST_USED, counts.keyId, counts.lastUsedAt);
        for (const operation of deprecatedIn(counts)) {
          this.connection.run(SET_DEPRECATED_USE, operation, counts.keyId, counts.lastUsedAt);
        }
      }
    });
  }

  #add(by: UsageInterval, start: number, counts: KeyCounts): void {
    const { select, add } = QUERIES[by];
    const { keyId, admitted, limited, banned, errors, byOperation } = counts;
    const stored = this.connection.get<StoredCounts>(select, start, keyId);
    const operations = stored ? addOperations(stored.operations, counts) : encodeOperations(byOperation);
    this.connection.run(add, start, keyId, admitted, limited, banned, errors, operations);
  }

  /** 400 days take some milliseconds, in which other work of the event loop goes on. */
  async readUsage(query: UsageQuery): Promise<readonly UsageRow[]> {
    const { select } = QUERIES[query.by];
    const rows: UsageRow[] = [];
    const addRowsOf = (start: number) => {
      const stored = this.connection.get<StoredCounts>(select, start, query.keyId);
      if (stored !== undefined) rows.push(...usageRowsOf(query.keyId, stored));
    };
    await forEachInTimeSlices(startsOf(query, this.#boundsOf(query.by)), addRowsOf, STARTS_PER_LOOK);
    return rows;
  }

  async usageByKey(query: KeyTotalsQuery): Promise<readonly KeyTotals[]> {
    const totals = await this.#totals.sum(query, this.#boundsOf(query.by));
    return totals.toSorted(byRequests).slice(0, query.limit);
  }

  #boundsOf(by: UsageInterval): Bounds {
    const stored = this.connection.get<{ [End in keyof Bounds]: number | null }>(QUERIES[by].bounds);
    return { first: stored?.first ?? Infinity, last: stored?.last ?? -Infinity };
  }

  lastUsed(keyIds: readonly number[]): ReadonlyMap<number, number> {
    const times = new Map<number, number>();
    for (const keyId of keyIds) {
      const used = this.connection.get<{ lastUsedAt: number }>(SELECT_LAST_USED, keyId);
      if (used) times.set(keyId, used.lastUsedAt);
    }
    return times;
  }

  countDeprecatedUse(since: number): number {
    const values = [...DEPRECATED_OPERATIONS, since];
    return this.connection.get<{ count: number }>(COUNT_DEPRECATED_USE, ...values)?.count ?? 0;
  }

  async deleteOldUsage(now: number): Promise<boolean> {
    return this.connection.transactionWhenUnlocked(() => {
      this.connection.run("DELETE FROM usage_batches WHERE hour < ?", now - DAY_MS);
      // All of them delete some.
      const hasMore = USAGE_INTERVALS.map((by) => {
        const start = retainedSince(by, now);
        const hasMoreTotals = this.#totals.deleteBefore(by, start, TOTALS_DELETED_PER_TURN);
        const { changes } = this.connection.run(QUERIES[by].deleteBefore, start, DELETED_PER_TURN);
        return changes === DELETED_PER_TURN || hasMoreTotals;
      });
      return hasMore.includes(true);
    });
  }

  close(): void {
    this.connection.close();
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

const SELECT_TOTALS = `SELECT block, number_bytes AS numberBytes, counts FROM usage_totals
  WHERE length = ? AND start = ? AND block = ?`;
const SELECT_TOTALS_AFTER = `SELECT block, number_bytes AS numberBytes, counts FROM usage_totals
  WHERE length = ? AND start = ? AND block > ? ORDER BY block LIMIT +?`;
const SAVE_TOTALS = `INSERT INTO usage_totals (length, start, block, number_bytes, counts)
  VALUES (?, ?, ?, ?, ?) ON CONFLICT (length, start, block)
  DO UPDATE SET number_bytes = excluded.number_bytes, counts = excluded.counts`;
const DELETE_TOTALS = `DELETE FROM usage_totals WHERE rowid IN
  (SELECT rowid FROM usage_totals WHERE length = ? AND start < ? ORDER BY start, block LIMIT +?)`;

/**
 * The counts of all keys, packed: 100 keys of one hour, 4 hours, day or 5 days are one row. Adding up 10,000 keys over
 * 24 hours reads 900 rows of them instead of 90,000 of the tables of single keys, in a fifth of the time; see
 * `npm run bench:admin`.
 */
class UsageTotals {
  constructor(private readonly connection: Connection) {}

  /** Adds to the interval and to its sum. */
  add(by: UsageInterval, start: number, keys: readonly KeyTotals[]): void {
    for (const [block, some] of Map.groupBy(keys, ({ keyId }) => blockOf(keyId))) {
      this.#addTo({ length: LENGTH_MS[by], start }, block, some);
      this.#addTo(sumOf(by, start), block, some);
    }
  }

  #addTo({ length, start }: StoredSum, block: number, keys: readonly KeyTotals[]): void {
    const stored = this.connection.get<PackedRow>(SELECT_TOTALS, length, start, block);
    const counts = withAdded(stored ? unpacked(stored) : new Uint32Array(), keys);
    const bytes = new Uint8Array(counts.buffer);
    this.connection.run(SAVE_TOTALS, length, start, block, counts.BYTES_PER_ELEMENT, bytes);
  }

  /** The sums of each key that has counts in the period. Other work of the event loop goes on meanwhile. */
  async sum(period: UsagePeriod, bounds: Bounds): Promise<readonly KeyTotals[]> {
    const { intervals, sums } = partsOf(period, bounds);
    const totals = new Map<number, MutableTotals>();
    const turn = new TimeSlice();
    for (const start of intervals) await this.#read({ length: LENGTH_MS[period.by], start }, totals, turn);
    for (const start of sums) await this.#read(sumOf(period.by, start), totals, turn);
    return [...totals.values()];
  }

  async #read(
    { length, start }: StoredSum,
    totals: Map<number, MutableTotals>,
    turn: TimeSlice,
  ): Promise<void> {
    let last = -1;
    for (;;) {
      const rows = this.connection.all<PackedRow>(SELECT_TOTALS_AFTER, length, start, last, ROWS_PER_READ);
      for (const row of rows) addTo(totals, unpacked(row));
      if (turn.isOver) await turn.next();
      if (rows.length < ROWS_PER_READ) return;
      last = rows.at(-1)?.block ?? last;
    }
  }

  /** Deletes intervals and sums that start before a time. Returns whether there are more. */
  deleteBefore(by: UsageInterval, start: number, limit: number): boolean {
    const lengths = [LENGTH_MS[by], sumOf(by, start).length];
    const deleted = lengths.map((length) => this.connection.run(DELETE_TOTALS, length, start, limit).changes);
    return deleted.includes(limit);
  }
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
  const counts = Array.from(stored);
  for (const { keyId, admitted, limited, banned, errors } of keys) {
    let at = 0;
    while (at < counts.length && counts[at] !== keyId) at += FIELDS;
    const field = (offset: number) => counts[at + offset] ?? 0;
    const sums = [keyId, field(1) + admitted, field(2) + limited, field(3) + banned, field(4) + errors];
    counts.splice(at, FIELDS, ...sums);
  }
  return counts.some((count) => count > MAX_UINT32) ? new Float64Array(counts) : new Uint32Array(counts);
}

type MutableTotals = { -readonly [Field in keyof KeyTotals]: KeyTotals[Field] };

function addTo(totals: Map<number, MutableTotals>, counts: PackedCounts): void {
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
  const totals = new UsageTotals(connection);
  for (const by of USAGE_INTERVALS) {
    const { name } = USAGE[by];
    const select = `SELECT key_id AS keyId, admitted, limited, banned, errors FROM ${name} WHERE start = ?`;
    for (const { start } of connection.all<{ start: number }>(`SELECT DISTINCT start FROM ${name}`)) {
      totals.add(by, start, connection.all<KeyTotals>(select, start));
    }
  }
}
