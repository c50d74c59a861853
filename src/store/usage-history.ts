/*
 * Both databases have one row per key and interval. The counts of all operations are JSON in one column, so a sum over
 * all keys reads a third of the rows that one row per operation would take, and adding to one key changes one row.
 */

import type { UsageHistoryStore } from "../domain/ports/usage-history.ts";
import { DAY_MS } from "../text/time-units.ts";
import {
  compareByRequests,
  COUNTS,
  type KeyCounts,
  type KeyTotals,
  type KeyTotalsQuery,
  type OperationCounts,
  type RequestCounts,
  retainedSince,
  intervalStart,
  intervalStarts,
  USAGE_INTERVALS,
  type UsageBatch,
  type UsageInterval,
  type UsageQuery,
  type UsageRow,
} from "../domain/usage-history.ts";
import { DEPRECATED_OPERATIONS, OPERATION_IDS } from "../domain/operation-ids.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { numberRowsOf, rowsOf, type SqlDatabase } from "./sql/steps.ts";
import { jsonArray, jsonRows, type SqlValue } from "./sql/values.ts";
import type { Dialect } from "./sql/dialect.ts";
import { DEPRECATED_USE, KEY_LAST_USED, USAGE } from "./sql/tables.ts";
import { insertFromJson } from "./sql/table-rows.ts";

/** The admitted requests and errors by operation, such as `{"listPets":[12,1]}`. */
type StoredOperations = Readonly<Record<string, readonly [admitted: number, errors: number] | undefined>>;

interface StoredCounts extends RequestCounts {
  readonly start: number;
  readonly operations: string;
}

/** The deprecated operations that the key has called. */
function deprecatedIn({ byOperation }: KeyCounts): readonly string[] {
  return DEPRECATED_OPERATIONS.filter((id) => byOperation.some(({ operation }) => operation === id));
}

function encodeOperations(byOperation: readonly OperationCounts[]): string {
  const entries = byOperation.map(({ operation, admitted, errors }) => [operation, [admitted, errors]]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** Makes one row per operation. The requests without an operation come last. */
function usageRowsOf(keyId: number, stored: StoredCounts): UsageRow[] {
  const { start } = stored;
  // This release or another one has written the JSON.
  const operations: StoredOperations = JSON.parse(stored.operations);
  const rows: UsageRow[] = [];
  let { admitted, errors } = stored;
  for (const operation of OPERATION_IDS) {
    const counts = operations[operation];
    if (counts === undefined) continue;
    rows.push({ keyId, start, operation, admitted: counts[0], limited: 0, banned: 0, errors: counts[1] });
    admitted -= counts[0];
    errors -= counts[1];
  }
  const { limited, banned } = stored;
  if (admitted + limited + banned > 0) {
    rows.push({ keyId, start, operation: "none", admitted, limited, banned, errors });
  }
  return rows;
}

/** The starts of the first and the last interval. If the table is empty, no interval is between them. */
interface Bounds {
  readonly first: number;
  readonly last: number;
}

/** Adds the counts of an inserted row to those of the stored one. */
const ADD_COUNTS = COUNTS.map((count) => `${count} = stored.${count} + excluded.${count}`).join(", ");

/** All servers add rows in the order of the keys, so that they do not deadlock. */
const BY_KEY = "ORDER BY key_id";

/** Records a batch. A repeated batch waits for the transaction of the first one, and then changes no row. */
const INSERT_BATCH = `INSERT INTO usage_batches AS stored (writer, sequence, hour) VALUES (?, ?, ?)
  ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, hour = excluded.hour
  WHERE stored.sequence < excluded.sequence RETURNING writer`;
const COUNT_DEPRECATED_USE = `SELECT count(DISTINCT key_id) AS count FROM deprecated_use
  WHERE operation IN (${DEPRECATED_OPERATIONS.map(() => "?").join(", ")}) AND last_used_at >= ?`;
const SET_LATER = `DO UPDATE SET last_used_at = excluded.last_used_at
  WHERE stored.last_used_at < excluded.last_used_at`;

/**
 * A database computes a sum once that is selected and sorted by. One of `admitted + limited + banned` would be a tenth
 * of the time.
 */
const REQUESTS = "sum(admitted) + sum(limited) + sum(banned)";
/** In PostgreSQL, a sum of integers is numeric. */
const SUMS = COUNTS.map((count) => `CAST(sum(${count}) AS bigint) AS ${count}`).join(", ");

const SELECT_USED_KEYS = `SELECT key_id AS "keyId" FROM key_last_used ORDER BY key_id`;

/** The statements on the table of hours or on that of days. */
export function usageQueries(by: UsageInterval, dialect: Dialect) {
  const { name } = USAGE[by];
  return {
    add: `${insertFromJson(USAGE[by], dialect)} ${BY_KEY}
      ON CONFLICT (start, key_id) DO UPDATE SET ${ADD_COUNTS}, operations = ${dialect.addedOperations}`,
    read: `SELECT start, admitted, limited, banned, errors, CAST(operations AS TEXT) AS operations FROM ${name}
      WHERE key_id = ? AND ${dialect.isOneOf("start", "?")} ORDER BY start`,
    sums: `SELECT sums.key_id AS "keyId", name, plan, admitted, limited, banned, errors, last_used_at AS "lastUsedAt"
      FROM (SELECT key_id, ${SUMS} FROM ${name} WHERE ${dialect.isOneOf("start", "?")} AND key_id BETWEEN ? AND ?
        GROUP BY key_id ORDER BY ${REQUESTS} DESC, key_id LIMIT +?) AS sums
      LEFT JOIN key_last_used ON key_last_used.key_id = sums.key_id LEFT JOIN api_keys ON id = sums.key_id`,
    bounds: `SELECT (SELECT min(start) FROM ${name}) AS first, (SELECT max(start) FROM ${name}) AS last`,
    deleteBefore: dialect.deleteFirst({ table: name, where: "start < ?", order: "start, key_id" }),
  };
}

function queriesOf(dialect: Dialect) {
  return {
    hour: usageQueries("hour", dialect),
    day: usageQueries("day", dialect),
    setLastUsed: `${insertFromJson(KEY_LAST_USED, dialect)} ${BY_KEY} ON CONFLICT (key_id) ${SET_LATER}`,
    setDeprecatedUse: `${insertFromJson(DEPRECATED_USE, dialect)} ORDER BY operation, key_id
      ON CONFLICT (operation, key_id) ${SET_LATER}`,
    lastUsed: `SELECT key_id AS "keyId", last_used_at AS "lastUsedAt" FROM key_last_used
      WHERE ${dialect.isOneOf("key_id", "?")}`,
  };
}

/** The number of rows that one statement adds up, in 20 ms. */
const ROWS_ADDED_AT_ONCE = 25_000;
/** Deleting this many rows takes SQLite one to two milliseconds, in which requests wait. */
const DELETED_AT_ONCE = 500;

export class SqlUsageHistoryStore implements UsageHistoryStore {
  readonly #queries: ReturnType<typeof queriesOf>;
  #lastSum: Promise<unknown> = Promise.resolve();

  constructor(private readonly database: SqlDatabase) {
    this.#queries = queriesOf(database.dialect);
  }

  addUsage({ writer, sequence, hour, keys }: UsageBatch): Promise<void> {
    const queries = this.#queries;
    return this.database.write(function* () {
      const isNew = (yield* rowsOf(INSERT_BATCH, writer, sequence, hour)).length > 0;
      if (!isNew) return;
      for (const by of USAGE_INTERVALS) {
        const start = intervalStart(by, hour);
        yield* rowsOf(queries[by].add, jsonRows(keys.map((counts) => usageValues(start, counts))));
      }
      const used = keys.map(({ keyId, lastUsedAt }) => [keyId, lastUsedAt]);
      yield* rowsOf(queries.setLastUsed, jsonRows(used));
      const deprecated = keys.flatMap((counts) =>
        deprecatedIn(counts).map((operation) => [operation, counts.keyId, counts.lastUsedAt]),
      );
      yield* rowsOf(queries.setDeprecatedUse, jsonRows(deprecated));
    });
  }

  async readUsage(query: UsageQuery): Promise<readonly UsageRow[]> {
    const { keyId, by } = query;
    const starts = jsonArray([...intervalStarts(query, await this.#boundsOf(by))]);
    const read = () => numberRowsOf<StoredCounts>(this.#queries[by].read, keyId, starts);
    return (await this.database.read(read)).flatMap((stored) => usageRowsOf(keyId, stored));
  }

  /** Sums of several operators follow one another, so that other reads wait for one statement at most. */
  usageByKey(query: KeyTotalsQuery): Promise<readonly KeyTotals[]> {
    const totals = this.#lastSum.then(() => this.#sumByKey(query));
    this.#lastSum = totals.catch(() => {});
    return totals;
  }

  /** Adds up some keys at a time, so that other reads of operators run between the statements. */
  async #sumByKey(query: KeyTotalsQuery): Promise<readonly KeyTotals[]> {
    const { limit = Number.MAX_SAFE_INTEGER, ...period } = query;
    const { sums } = this.#queries[period.by];
    const starts = [...intervalStarts(period, await this.#boundsOf(period.by))];
    const used = await this.database.read(() => numberRowsOf<{ keyId: number }>(SELECT_USED_KEYS));
    const keysAtOnce = Math.ceil(ROWS_ADDED_AT_ONCE / starts.length);
    const totals: KeyTotals[] = [];
    for (let from = 0; from < used.length; from += keysAtOnce) {
      const keys = used.slice(from, from + keysAtOnce);
      const values = [jsonArray(starts), keys[0]?.keyId ?? 0, keys.at(-1)?.keyId ?? 0, limit];
      totals.push(...(await this.database.read(() => numberRowsOf<KeyTotals>(sums, ...values))));
    }
    return totals.toSorted(compareByRequests).slice(0, limit);
  }

  async #boundsOf(by: UsageInterval): Promise<Bounds> {
    type StoredBounds = { [End in keyof Bounds]: number | null };
    const [stored] = await this.database.read(() => numberRowsOf<StoredBounds>(this.#queries[by].bounds));
    return { first: stored?.first ?? Infinity, last: stored?.last ?? -Infinity };
  }

  lastUsed(keyIds: readonly number[]): Awaitable<ReadonlyMap<number, number>> {
    const { lastUsed } = this.#queries;
    return this.database.read(function* () {
      type UseRow = { keyId: number; lastUsedAt: number };
      const rows = yield* numberRowsOf<UseRow>(lastUsed, jsonArray(keyIds));
      return new Map(rows.map((row) => [row.keyId, row.lastUsedAt]));
    });
  }

  countDeprecatedUse(since: number): Awaitable<number> {
    return this.database.read(function* () {
      const values = [...DEPRECATED_OPERATIONS, since];
      const [row] = yield* numberRowsOf<{ count: number }>(COUNT_DEPRECATED_USE, ...values);
      return row?.count ?? 0;
    });
  }

  deleteOldUsage(now: number): Promise<boolean> {
    const queries = this.#queries;
    return this.database.write(function* () {
      yield* rowsOf("DELETE FROM usage_batches WHERE hour < ?", now - DAY_MS);
      let hasMore = false;
      for (const by of USAGE_INTERVALS) {
        const start = retainedSince(by, now);
        const deleted = yield* rowsOf(queries[by].deleteBefore, start, DELETED_AT_ONCE);
        hasMore ||= deleted.length === DELETED_AT_ONCE;
      }
      return hasMore;
    });
  }
}

/** The values of a row, in the order of the columns of USAGE. */
function usageValues(start: number, counts: KeyCounts): SqlValue[] {
  const { keyId, admitted, limited, banned, errors, byOperation } = counts;
  return [start, keyId, admitted, limited, banned, errors, encodeOperations(byOperation)];
}
