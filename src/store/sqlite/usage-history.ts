import type { Statement } from "bun:sqlite";
import type { Awaitable } from "../../domain/awaitable.ts";
import type { UsageHistoryStore } from "../../domain/ports.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import {
  byRequests,
  type KeyCounts,
  type KeyTotals,
  type KeyTotalsQuery,
  partsOf,
  retainedSince,
  startOf,
  startsOf,
  sumOf,
  type UsageBatch,
  type UsageInterval,
  type UsageQuery,
  type UsageRow,
} from "../../domain/usage-history.ts";
import { forEachInTurns, Turn } from "../../event-loop.ts";
import { FirstItems } from "../../first-items.ts";
import { addOperations, encodeOperations, type StoredCounts, usageRowsOf } from "../usage-rows.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./sqlite-errors.ts";

/** Rows that are read, or deleted, in one turn of the event loop: one to two milliseconds. */
const ROWS_PER_TURN = 2_000;
const DELETED_PER_TURN = 500;

/**
 * Has a connection of its own, whose `synchronous` is NORMAL: adding counts does not wait for the disk, and so delays
 * no request. What was added survives a crash of the process; a power failure may lose the last seconds.
 */
export class SqliteUsageHistoryStore implements UsageHistoryStore {
  readonly #tables: Readonly<Record<UsageInterval, UsageTable>>;
  readonly #insertBatch: Statement<unknown, [string, number, number]>;
  readonly #deleteBatches: Statement<unknown, [number]>;
  readonly #setLastUsed: Statement<unknown, [number, number]>;
  readonly #selectLastUsed: Statement<{ lastUsedAt: number }, [number]>;
  readonly #selectLastUsedAfter: Statement<unknown, [number, number]>;

  constructor(private readonly connection: Connection) {
    this.#tables = {
      hour: new UsageTable(connection, "hour"),
      day: new UsageTable(connection, "day"),
    };
    this.#insertBatch =
      connection.prepare(`INSERT INTO usage_batches (writer, sequence, hour) VALUES (?, ?, ?)
      ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, hour = excluded.hour
      WHERE sequence < excluded.sequence`);
    this.#deleteBatches = connection.prepare("DELETE FROM usage_batches WHERE hour < ?");
    this.#setLastUsed = connection.prepare(`INSERT INTO key_last_used (key_id, last_used_at) VALUES (?, ?)
      ON CONFLICT (key_id) DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)`);
    this.#selectLastUsed = connection
      .prepare<{ lastUsedAt: number }, [number]>(
        "SELECT last_used_at AS lastUsedAt FROM key_last_used WHERE key_id = ?",
      )
      .safeIntegers(false);
    this.#selectLastUsedAfter = connection
      .prepare<unknown, [number, number]>(
        "SELECT key_id, last_used_at FROM key_last_used WHERE key_id > ? ORDER BY key_id LIMIT +?",
      )
      .safeIntegers(false);
  }

  async addUsage({ writer, sequence, hour, keys }: UsageBatch): Promise<void> {
    const day = startOf("day", hour);
    await this.connection.transactionWhenUnlocked(() => {
      if (this.#insertBatch.run(writer, sequence, hour).changes === 0) return;
      for (const counts of keys) {
        this.#tables.hour.add(hour, counts);
        this.#tables.day.add(day, counts);
        this.#setLastUsed.run(counts.keyId, counts.lastUsedAt);
      }
    });
  }

  readUsage(query: UsageQuery): readonly UsageRow[] {
    return translateErrors(() => this.#tables[query.by].read(query));
  }

  async usageByKey(query: KeyTotalsQuery): Promise<readonly KeyTotals[]> {
    const { by, limit } = query;
    const sums = await this.#tables[by].sum(query);
    if (limit === undefined) return Array.from(sums, totalsOf).toSorted(byRequests);
    const first = new FirstItems(limit, byRequests);
    await forEachInTurns(sums, (entry) => first.add(totalsOf(entry)));
    return first.items;
  }

  lastUsed(keyIds?: readonly number[]): Awaitable<ReadonlyMap<number, number>> {
    if (keyIds === undefined) return this.#allLastUsed();
    return translateErrors(() => {
      const times = keyIds.map((keyId) => [keyId, this.#selectLastUsed.get(keyId)?.lastUsedAt] as const);
      return new Map(times.flatMap(([keyId, time]) => (time === undefined ? [] : [[keyId, time] as const])));
    });
  }

  async #allLastUsed(): Promise<ReadonlyMap<number, number>> {
    const times = new Map<number, number>();
    const read = (after: number) => {
      // Both columns are INTEGER NOT NULL in a STRICT table.
      const rows = this.#selectLastUsedAfter.values(after, ROWS_PER_TURN) as [number, number][];
      for (const [keyId, time] of rows) times.set(keyId, time);
      return rows;
    };
    await readInTurns(read);
    return times;
  }

  async deleteOldUsage(now: number): Promise<boolean> {
    return this.connection.transactionWhenUnlocked(() => {
      this.#deleteBatches.run(now - DAY_MS);
      const { hour, day } = this.#tables;
      const hours = hour.deleteBefore(retainedSince("hour", now));
      const days = day.deleteBefore(retainedSince("day", now));
      return Math.max(hours, days) === DELETED_PER_TURN;
    });
  }

  close(): void {
    this.connection.close();
  }
}

type Counts = [admitted: number, limited: number, banned: number, errors: number];
type CountsRow = [keyId: number, ...counts: Counts];

/** The counts of all hours or of all days, in order of the interval and the key, and their sums. */
class UsageTable {
  readonly #selectOperations: Statement<{ operations: string }, [number, number]>;
  readonly #add: Statement<unknown, [number, number, ...Counts, string]>;
  readonly #selectBounds: Statement<{ first: number | null; last: number | null }, []>;
  readonly #select: Statement<StoredCounts, [number, number]>;
  readonly #selectAll: Statement<unknown, [number, number, number]>;
  readonly #delete: Statement<unknown, [number, number]>;
  readonly #addSum: Statement<unknown, [number, number, ...Counts]>;
  readonly #selectSums: Statement<unknown, [number, number, number]>;
  readonly #deleteSums: Statement<unknown, [number, number]>;

  constructor(
    connection: Connection,
    private readonly by: UsageInterval,
  ) {
    const table = by === "hour" ? "usage_hours" : "usage_days";
    const { length } = sumOf(by, 0);
    this.#selectOperations = connection.prepare(
      `SELECT operations FROM ${table} WHERE start = ? AND key_id = ?`,
    );
    this.#add = connection.prepare(`INSERT INTO ${table}
      (start, key_id, admitted, limited, banned, errors, operations) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (start, key_id) DO UPDATE SET admitted = admitted + excluded.admitted,
        limited = limited + excluded.limited, banned = banned + excluded.banned,
        errors = errors + excluded.errors, operations = excluded.operations`);
    this.#selectBounds = connection
      .prepare<{ first: number | null; last: number | null }, []>(
        `SELECT (SELECT min(start) FROM ${table}) AS first, (SELECT max(start) FROM ${table}) AS last`,
      )
      .safeIntegers(false);
    this.#select = connection
      .prepare<StoredCounts, [number, number]>(
        `SELECT start, admitted, limited, banned, errors, operations FROM ${table}
         WHERE start = ? AND key_id = ?`,
      )
      .safeIntegers(false);
    this.#selectAll = connection
      .prepare<unknown, [number, number, number]>(
        `SELECT key_id, admitted, limited, banned, errors FROM ${table}
         WHERE start = ? AND key_id > ? ORDER BY key_id LIMIT +?`,
      )
      .safeIntegers(false);
    this.#delete = connection.prepare(`DELETE FROM ${table} WHERE (start, key_id) IN
      (SELECT start, key_id FROM ${table} WHERE start < ? ORDER BY start, key_id LIMIT +?)`);
    this.#addSum = connection.prepare(`INSERT INTO usage_sums
      (length, start, key_id, admitted, limited, banned, errors) VALUES (${length}, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (length, start, key_id) DO UPDATE SET admitted = admitted + excluded.admitted,
        limited = limited + excluded.limited, banned = banned + excluded.banned,
        errors = errors + excluded.errors`);
    this.#selectSums = connection
      .prepare<unknown, [number, number, number]>(
        `SELECT key_id, admitted, limited, banned, errors FROM usage_sums
         WHERE length = ${length} AND start = ? AND key_id > ? ORDER BY key_id LIMIT +?`,
      )
      .safeIntegers(false);
    this.#deleteSums = connection.prepare(`DELETE FROM usage_sums WHERE (length, start, key_id) IN
      (SELECT length, start, key_id FROM usage_sums WHERE length = ${length} AND start < ?
       ORDER BY start, key_id LIMIT +?)`);
  }

  add(start: number, counts: KeyCounts): void {
    const { keyId, admitted, limited, banned, errors } = counts;
    const stored = this.#selectOperations.get(start, keyId);
    const operations =
      stored === null ? encodeOperations(counts.byOperation) : addOperations(stored.operations, counts);
    this.#add.run(start, keyId, admitted, limited, banned, errors, operations);
    this.#addSum.run(sumOf(this.by, start).start, keyId, admitted, limited, banned, errors);
  }

  read(query: UsageQuery): UsageRow[] {
    const rows: UsageRow[] = [];
    for (const start of startsOf(query, this.#bounds())) {
      const stored = this.#select.get(start, query.keyId);
      if (stored !== null) rows.push(...usageRowsOf(query.keyId, stored));
    }
    return rows;
  }

  /** The sums of each key. Other work of the event loop goes on between two pages of rows. */
  async sum(query: KeyTotalsQuery): Promise<ReadonlyMap<number, Counts>> {
    const { intervals, sums } = partsOf(
      query,
      translateErrors(() => this.#bounds()),
    );
    const totals = new Map<number, Counts>();
    for (const start of intervals) await addAll(totals, this.#selectAll, start);
    for (const start of sums) await addAll(totals, this.#selectSums, start);
    return totals;
  }

  deleteBefore(start: number): number {
    const deletedSums = this.#deleteSums.run(start, DELETED_PER_TURN).changes;
    return Math.max(deletedSums, this.#delete.run(start, DELETED_PER_TURN).changes);
  }

  /** Without rows, no interval is between them. */
  #bounds(): { first: number; last: number } {
    const { first, last } = this.#selectBounds.get() ?? { first: null, last: null };
    return { first: first ?? Infinity, last: last ?? -Infinity };
  }
}

/** Adds the rows of one interval or one sum. */
async function addAll(
  totals: Map<number, Counts>,
  select: Statement<unknown, [number, number, number]>,
  start: number,
): Promise<void> {
  await readInTurns((after) => {
    // The columns are INTEGER NOT NULL in a STRICT table.
    const rows = select.values(start, after, ROWS_PER_TURN) as CountsRow[];
    for (const row of rows) addTo(totals, row);
    return rows;
  });
}

/** Reads all rows in the order of their keys. Other work of the event loop goes on between two pages of them. */
async function readInTurns(
  read: (afterKeyId: number) => readonly (readonly [keyId: number, ...unknown[]])[],
): Promise<void> {
  const turn = new Turn();
  let lastKeyId = 0;
  for (;;) {
    const rows = translateErrors(() => read(lastKeyId));
    lastKeyId = rows.at(-1)?.[0] ?? 0;
    await turn.next();
    if (rows.length < ROWS_PER_TURN) return;
  }
}

function totalsOf([keyId, [admitted, limited, banned, errors]]: readonly [number, Counts]): KeyTotals {
  return { keyId, admitted, limited, banned, errors };
}

function addTo(totals: Map<number, Counts>, row: CountsRow): void {
  const total = totals.get(row[0]);
  if (total === undefined) {
    totals.set(row[0], [row[1], row[2], row[3], row[4]]);
    return;
  }
  total[0] += row[1];
  total[1] += row[2];
  total[2] += row[3];
  total[3] += row[4];
}
