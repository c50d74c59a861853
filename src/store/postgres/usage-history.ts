import type { UsageHistoryStore } from "../../domain/ports.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import {
  DEPRECATED_OPERATIONS,
  HOUR_MS,
  type KeyTotals,
  type KeyTotalsQuery,
  partsOf,
  retainedSince,
  startOf,
  sumOf,
  USAGE_INTERVALS,
  type UsageBatch,
  type UsageInterval,
  type UsageQuery,
  type UsageRow,
} from "../../domain/usage-history.ts";
import { deprecatedIn, encodeOperations, type StoredCounts, usageRowsOf } from "../rows.ts";
import type { Pools } from "./pool.ts";

const DELETED_AT_ONCE = 5_000;

/** A repeated batch waits for the transaction of the first one, and then changes no row. */
const INSERT_BATCH = `INSERT INTO usage_batches AS stored (writer, sequence, hour) VALUES ($1, $2, $3)
  ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, hour = excluded.hour
  WHERE stored.sequence < excluded.sequence
  RETURNING writer`;

/** In the order of the keys, so that instances that add to the same rows do not deadlock. */
const SET_LAST_USED = `INSERT INTO key_last_used AS stored (key_id, last_used_at)
  SELECT key_id, last_used_at FROM unnest($1::int8[], $2::int8[]) AS given (key_id, last_used_at)
  ORDER BY key_id
  ON CONFLICT (key_id) DO UPDATE SET last_used_at = greatest(stored.last_used_at, excluded.last_used_at)`;

/** In the order of the keys, as above. */
const SET_DEPRECATED_USE = `INSERT INTO deprecated_use AS stored (operation, key_id, last_used_at)
  SELECT operation, key_id, last_used_at
  FROM unnest($1::text[], $2::int8[], $3::int8[]) AS given (operation, key_id, last_used_at)
  ORDER BY operation, key_id
  ON CONFLICT (operation, key_id)
  DO UPDATE SET last_used_at = greatest(stored.last_used_at, excluded.last_used_at)`;

const COUNT_DEPRECATED_USE = `SELECT count(DISTINCT key_id)::int AS count
  FROM deprecated_use WHERE operation = ANY ($1::text[]) AND last_used_at >= $2`;

/** The length is the first value: intervals of both lengths are in one table. */
const ADD_SUMS = `INSERT INTO usage_sums AS stored (length, start, key_id, admitted, limited, banned, errors)
  SELECT $1::int8, $2::int8, key_id, admitted, limited, banned, errors
  FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[])
    AS given (key_id, admitted, limited, banned, errors)
  ORDER BY key_id
  ON CONFLICT (length, start, key_id) DO UPDATE SET admitted = stored.admitted + excluded.admitted,
    limited = stored.limited + excluded.limited, banned = stored.banned + excluded.banned,
    errors = stored.errors + excluded.errors`;

/** Add up the hours and days of a database that has no sums. */
export const FILL_SUMS: readonly string[] = USAGE_INTERVALS.map((by) => {
  const { length } = sumOf(by, 0);
  return `INSERT INTO usage_sums SELECT ${length}, start - start % ${length}, key_id, sum(admitted), sum(limited),
    sum(banned), sum(errors) FROM ${by === "hour" ? "usage_hours" : "usage_days"} GROUP BY 2, 3`;
});

/** Two instances that delete at the same time delete different rows. */
function deleteOldest(table: string, condition: string, order: string): string {
  return `WITH deleted AS (
      DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE ${condition} ORDER BY ${order} LIMIT $2 FOR UPDATE SKIP LOCKED))
      RETURNING key_id
    )
    SELECT count(*)::int AS count FROM deleted`;
}

const DELETE_SUMS = deleteOldest("usage_sums", "length = $3 AND start < $1", "length, start, key_id");

interface UsageQueries {
  readonly add: string;
  readonly read: string;
  readonly bounds: string;
  readonly sum: string;
  readonly deleteBefore: string;
}

export const USAGE_QUERIES: Readonly<Record<UsageInterval, UsageQueries>> = {
  hour: queriesOf("hour", HOUR_MS),
  day: queriesOf("day", DAY_MS),
};

/**
 * `add`: in the order of the keys, as above.
 *
 * `read`: LATERAL, so that each interval is looked up by the primary key, whatever the planner knows of the table.
 *
 * `sum`: float8 is exact below 2^53, and is added faster than int8, whose sum is numeric.
 */
function queriesOf(by: UsageInterval, length: number): UsageQueries {
  const table = by === "hour" ? "usage_hours" : "usage_days";
  return {
    add: `INSERT INTO ${table} AS stored (start, key_id, admitted, limited, banned, errors, operations)
      SELECT $1::int8, key_id, admitted, limited, banned, errors, operations::jsonb
      FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::text[])
        AS given (key_id, admitted, limited, banned, errors, operations)
      ORDER BY key_id
      ON CONFLICT (start, key_id) DO UPDATE SET admitted = stored.admitted + excluded.admitted,
        limited = stored.limited + excluded.limited, banned = stored.banned + excluded.banned,
        errors = stored.errors + excluded.errors, operations = (
          SELECT coalesce(jsonb_object_agg(operation, counts), '{}') FROM (
            SELECT operation, jsonb_build_array(sum((counts->>0)::int8), sum((counts->>1)::int8)) AS counts
            FROM (
              SELECT * FROM jsonb_each(stored.operations)
              UNION ALL SELECT * FROM jsonb_each(excluded.operations)
            ) AS both_counts (operation, counts)
            GROUP BY operation
          ) AS sums
        )`,
    read: `SELECT counts.* FROM generate_series(
        greatest($2::int8, (SELECT min(start) FROM ${table})),
        least($3::int8, (SELECT max(start) FROM ${table})), ${length}) AS intervals (start)
      CROSS JOIN LATERAL (
        SELECT start::float8, admitted::float8, limited::float8, banned::float8, errors::float8,
          operations::text AS operations
        FROM ${table} WHERE ${table}.start = intervals.start AND key_id = $1 OFFSET 0
      ) AS counts
      ORDER BY counts.start`,
    bounds: `SELECT (SELECT min(start) FROM ${table})::float8 AS first,
      (SELECT max(start) FROM ${table})::float8 AS last`,
    sum: `SELECT key_id::float8 AS "keyId", sum(admitted::float8) AS admitted, sum(limited::float8) AS limited,
        sum(banned::float8) AS banned, sum(errors::float8) AS errors
      FROM (
        SELECT key_id, admitted, limited, banned, errors FROM ${table} WHERE start = ANY ($1::int8[])
        UNION ALL
        SELECT key_id, admitted, limited, banned, errors FROM usage_sums
        WHERE length = ${sumOf(by, 0).length} AND start = ANY ($2::int8[])
      ) AS parts
      GROUP BY key_id
      ORDER BY sum((admitted + limited + banned)::float8) DESC, key_id
      LIMIT $3`,
    deleteBefore: deleteOldest(table, "start < $1", "start, key_id"),
  };
}

const SELECT_LAST_USED = `SELECT key_id::float8 AS "keyId", last_used_at::float8 AS "lastUsedAt"
  FROM key_last_used WHERE key_id = ANY ($1::int8[])`;

/** The instances add to the same rows. */
export class PostgresUsageHistoryStore implements UsageHistoryStore {
  constructor(private readonly pools: Pools) {}

  async addUsage({ writer, sequence, hour, keys }: UsageBatch): Promise<void> {
    const ids = keys.map(({ keyId }) => keyId);
    const counts = [
      ids,
      keys.map(({ admitted }) => admitted),
      keys.map(({ limited }) => limited),
      keys.map(({ banned }) => banned),
      keys.map(({ errors }) => errors),
    ];
    const operations = keys.map(({ byOperation }) => encodeOperations(byOperation));
    await this.pools.writes.transaction(async (tx) => {
      const isNew = (await tx.unsafe<unknown[]>(INSERT_BATCH, [writer, sequence, hour])).length > 0;
      if (!isNew || keys.length === 0) return;
      for (const by of USAGE_INTERVALS) {
        await tx.unsafe(USAGE_QUERIES[by].add, [startOf(by, hour), ...counts, operations]);
        const sum = sumOf(by, hour);
        await tx.unsafe(ADD_SUMS, [sum.length, sum.start, ...counts]);
      }
      await tx.unsafe(SET_LAST_USED, [ids, keys.map(({ lastUsedAt }) => lastUsedAt)]);
      const deprecated = keys.flatMap((counts) =>
        deprecatedIn(counts).map((operation) => ({
          operation,
          keyId: counts.keyId,
          lastUsedAt: counts.lastUsedAt,
        })),
      );
      if (deprecated.length === 0) return;
      await tx.unsafe(SET_DEPRECATED_USE, [
        deprecated.map(({ operation }) => operation),
        deprecated.map(({ keyId }) => keyId),
        deprecated.map(({ lastUsedAt }) => lastUsedAt),
      ]);
    });
  }

  async readUsage({ keyId, by, since, until }: UsageQuery): Promise<readonly UsageRow[]> {
    const values = [keyId, startOf(by, since), startOf(by, until)];
    const rows = await this.#read<StoredCounts>(USAGE_QUERIES[by].read, values);
    return rows.flatMap((row) => usageRowsOf(keyId, row));
  }

  async usageByKey(query: KeyTotalsQuery): Promise<readonly KeyTotals[]> {
    const { bounds, sum } = USAGE_QUERIES[query.by];
    const [stored] = await this.#read<{ first: number | null; last: number | null }>(bounds, []);
    const { intervals, sums } = partsOf(query, {
      first: stored?.first ?? Infinity,
      last: stored?.last ?? -Infinity,
    });
    return Array.from(await this.#read<KeyTotals>(sum, [intervals, sums, query.limit]));
  }

  async lastUsed(keyIds: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const rows = await this.#read<{ keyId: number; lastUsedAt: number }>(SELECT_LAST_USED, [keyIds]);
    return new Map(rows.map(({ keyId, lastUsedAt }) => [keyId, lastUsedAt]));
  }

  async countDeprecatedUse(since: number): Promise<number> {
    const values = [DEPRECATED_OPERATIONS, since];
    const [row] = await this.#read<{ count: number }>(COUNT_DEPRECATED_USE, values);
    return row?.count ?? 0;
  }

  async deleteOldUsage(now: number): Promise<boolean> {
    const hours = await this.#delete("hour", now);
    const days = await this.#delete("day", now);
    await this.pools.writes.query((sql) =>
      sql.unsafe("DELETE FROM usage_batches WHERE hour < $1", [now - DAY_MS]),
    );
    return Math.max(hours, days) === DELETED_AT_ONCE;
  }

  async #delete(by: UsageInterval, now: number): Promise<number> {
    const values = [retainedSince(by, now), DELETED_AT_ONCE];
    const run = async (query: string, ...more: number[]): Promise<number> => {
      const [row] = await this.pools.writes.query((sql) =>
        sql.unsafe<{ count: number }[]>(query, [...values, ...more]),
      );
      return row?.count ?? 0;
    };
    const deleted = await run(USAGE_QUERIES[by].deleteBefore);
    return Math.max(deleted, await run(DELETE_SUMS, sumOf(by, now).length));
  }

  #read<Row>(query: string, values: unknown[]): Promise<Row[]> {
    return this.pools.reads.query((sql) => sql.unsafe<Row[]>(query, values));
  }
}
