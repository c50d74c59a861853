import {
  type KeyTotals,
  type KeyTotalsQuery,
  partsOf,
  sumOf,
  USAGE_INTERVALS,
  type UsageInterval,
} from "../../domain/usage-history.ts";
import { jsonRows, rowsOf, type Steps } from "../statements.ts";
import { COUNT_COLUMNS, insertInto, USAGE } from "../tables.ts";
import { ADD_COUNTS, type Bounds, type UsageSums } from "../usage-history.ts";
import type { Pools } from "./pool.ts";
import { POSTGRES_DIALECT } from "./statements.ts";

const SUMS = { name: "usage_sums", columns: { length: "integer", ...COUNT_COLUMNS } } as const;

const ADD_SUMS = `${insertInto(SUMS, POSTGRES_DIALECT)} ORDER BY key_id
  ON CONFLICT (length, start, key_id) DO UPDATE SET ${ADD_COUNTS}`;
const DELETE_SUMS = POSTGRES_DIALECT.deleteFirst({
  table: "usage_sums",
  where: "length = ? AND start < ?",
  order: "length, start, key_id",
});
const DELETED_AT_ONCE = 500;

/** Add up the hours and days of a database that has no sums. */
export const FILL_SUMS: readonly string[] = USAGE_INTERVALS.map((by) => {
  const { length } = sumOf(by, 0);
  return `INSERT INTO usage_sums SELECT ${length}, start - start % ${length}, key_id, sum(admitted), sum(limited),
    sum(banned), sum(errors) FROM ${USAGE[by].name} GROUP BY 2, 3`;
});

/** float8 is exact below 2^53, and is added faster than int8, whose sum is numeric. */
export function selectSums(by: UsageInterval): string {
  return `SELECT key_id::float8 AS "keyId", sum(admitted::float8) AS admitted, sum(limited::float8) AS limited,
      sum(banned::float8) AS banned, sum(errors::float8) AS errors
    FROM (
      SELECT key_id, admitted, limited, banned, errors FROM ${USAGE[by].name} WHERE start = ANY ($1::int8[])
      UNION ALL
      SELECT key_id, admitted, limited, banned, errors FROM usage_sums
      WHERE length = ${sumOf(by, 0).length} AND start = ANY ($2::int8[])
    ) AS parts
    GROUP BY key_id
    ORDER BY sum((admitted + limited + banned)::float8) DESC, key_id
    LIMIT $3`;
}

/** The counts of each key in 4 hours or 5 days, in a table of their own. */
export class PostgresUsageSums implements UsageSums {
  constructor(private readonly pools: Pools) {}

  *add(by: UsageInterval, start: number, keys: readonly KeyTotals[]): Steps<void> {
    const sum = sumOf(by, start);
    const rows = keys.map(({ keyId, admitted, limited, banned, errors }) => [
      sum.length,
      sum.start,
      keyId,
      admitted,
      limited,
      banned,
      errors,
    ]);
    yield* rowsOf(ADD_SUMS, jsonRows(rows));
  }

  async read(query: KeyTotalsQuery, bounds: Bounds): Promise<readonly KeyTotals[]> {
    const { intervals, sums } = partsOf(query, bounds);
    const values = [intervals, sums, query.limit];
    const rows = await this.pools.reads.query((sql) => sql.unsafe<KeyTotals[]>(selectSums(query.by), values));
    return Array.from(rows);
  }

  *deleteBefore(by: UsageInterval, start: number): Steps<boolean> {
    const deleted = yield* rowsOf(DELETE_SUMS, sumOf(by, start).length, start, DELETED_AT_ONCE);
    return deleted.length === DELETED_AT_ONCE;
  }
}
