import type { Statement } from "bun:sqlite";
import type { Awaitable } from "../../api/awaitable.ts";
import type { UsageHistoryStore } from "../../domain/ports.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import {
  byRequests,
  DEPRECATED_OPERATIONS,
  type KeyCounts,
  type KeyTotals,
  type KeyTotalsQuery,
  retainedSince,
  startOf,
  startsOf,
  USAGE_INTERVALS,
  type UsageBatch,
  type UsageInterval,
  type UsageQuery,
  type UsageRow,
} from "../../domain/usage-history.ts";
import { forEachInTurns, Turn } from "../../event-loop.ts";
import { FirstItems } from "../../first-items.ts";
import {
  addOperations,
  deprecatedIn,
  encodeOperations,
  type StoredCounts,
  usageRowsOf,
} from "../usage-rows.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./sqlite-errors.ts";
import { UsageTotals } from "./usage-totals.ts";

/** Rows that are read before the time is looked at. */
const ROWS_PER_READ = 200;
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
  readonly #selectLastUsedAfter: Statement<unknown, [number, number]>;
  readonly #setDeprecatedUse: Statement<unknown, [string, number, number]>;
  readonly #selectDeprecatedUseAfter: Statement<unknown, [string, number, number]>;

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
    this.#setDeprecatedUse =
      connection.prepare(`INSERT INTO deprecated_use (operation, key_id, last_used_at) VALUES (?, ?, ?)
      ON CONFLICT (operation, key_id) DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)`);
    this.#selectDeprecatedUseAfter = connection
      .prepare<unknown, [string, number, number]>(
        `SELECT key_id, last_used_at FROM deprecated_use
         WHERE operation = ? AND key_id > ? ORDER BY key_id LIMIT +?`,
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
    const { by, limit, isUnordered = false } = query;
    const totals = await this.#totals.sum(query, this.#tables[by].bounds());
    if (limit !== undefined) {
      const first = new FirstItems(limit, byRequests);
      await forEachInTurns(totals, (some) => some.forEach((each) => first.add(each)), 1);
      return first.items;
    }
    const all: KeyTotals[] = [];
    await forEachInTurns(totals, (some) => all.push(...some), 1);
    return isUnordered ? all : all.toSorted(byRequests);
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
    await readTimes(
      (after, limit) => this.#selectLastUsedAfter.values(after, limit),
      (keyId, time) => times.set(keyId, time),
    );
    return times;
  }

  async lastDeprecatedUse(since: number): Promise<ReadonlyMap<number, number>> {
    const times = new Map<number, number>();
    for (const operation of DEPRECATED_OPERATIONS) {
      await readTimes(
        (after, limit) => this.#selectDeprecatedUseAfter.values(operation, after, limit),
        (keyId, time) => {
          if (time >= since) times.set(keyId, Math.max(time, times.get(keyId) ?? 0));
        },
      );
    }
    return times;
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

/** Reads keys and times in the order of the keys. Other work of the event loop goes on meanwhile. */
async function readTimes(
  read: (afterKeyId: number, limit: number) => unknown,
  add: (keyId: number, time: number) => void,
): Promise<void> {
  const turn = new Turn();
  let last = 0;
  for (;;) {
    // Both columns are INTEGER NOT NULL in a STRICT table.
    const rows = translateErrors(() => read(last, ROWS_PER_READ)) as readonly [number, number][];
    for (const [keyId, time] of rows) add((last = keyId), time);
    if (rows.length < ROWS_PER_READ) return;
    if (turn.isOver) await turn.next();
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
    await forEachInTurns(startsOf(query, this.bounds()), addRowsOf, STARTS_PER_LOOK);
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
