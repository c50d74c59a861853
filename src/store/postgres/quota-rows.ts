/* The rows of quotas in PostgreSQL, and the statements that read, count and store them. Times are by its clock. */

import type { ReservedSQL, SQL } from "bun";
import { Unavailable } from "../../api/errors.ts";
import { expiresAt, type Limits, newQuota, type Quota } from "../../domain/rate-limit.ts";
import { fromStored, toStored } from "../../domain/stored-quota.ts";
import { DAY_MS, MINUTE_MS } from "../../text/time-units.ts";
import type { KeyQuotas } from "../sql/table-store.ts";

/** Another server may delete a row between the statement that adds it and the one that locks it. */
const MAX_ATTEMPTS = 5;
const MAX_PURGED = 100;
/**
 * An open snapshot, such as that of a backup, keeps each version of a row, and every look-up reads those with the same
 * `part`. So after this many requests a row gets the next part, and a look-up begins at the highest. An update then
 * reads at most 50 pages, however many there were; without parts, 390 after 20,000.
 */
const REQUESTS_PER_PART = 1_000;

/** The quota of a key, and the part of its row. */
export interface QuotaRow {
  readonly quota: Quota;
  readonly part: number;
}

export interface QuotaRows {
  readonly rows: Map<number, QuotaRow>;
  /** The time after the locks of all rows were taken. */
  readonly now: number;
}

export interface CountedRows extends QuotaRows {
  /** The keys whose requests the statement has counted. Their rows have the quota before. */
  readonly counted: ReadonlySet<number>;
}

/** Requests of a key that are to be counted. */
export interface RequestsOfKey {
  readonly keyId: number;
  readonly limits: Limits;
  readonly requests: readonly unknown[];
}

const NOW = "floor(extract(epoch FROM clock_timestamp()) * 1000)::int8";
const GIVEN_IDS = "string_to_array($1, ',')::int8[]";
/** The row of the key `given.key_id`: among the versions that no snapshot needs any more, the first that is visible. */
const NEWEST = `SELECT key_id, part, numbers FROM quotas WHERE quotas.key_id = given.key_id ORDER BY part DESC LIMIT 1`;
const row = (table: string) =>
  `${table}.key_id || ',' || ${table}.part || ',' || array_to_string(${table}.numbers, ',')`;
const SUMMARY = `coalesce(string_agg(${row("quota")}, ';'), '') AS quotas, ${NOW} AS now`;

const READ = `SELECT ${SUMMARY} FROM unnest(${GIVEN_IDS}) AS given (key_id), LATERAL (${NEWEST}) AS quota`;

const LOCK = `WITH quota AS MATERIALIZED (
    SELECT newest.* FROM unnest(${GIVEN_IDS}) AS given (key_id), LATERAL (${NEWEST} FOR UPDATE) AS newest
  ) SELECT ${SUMMARY} FROM quota`;

/**
 * Adds the requests of each key if no ban is current, both windows are open, and all of the requests fit. That is all
 * that SQL knows of domain/rate-limit.ts. The numbers have the order of domain/stored-quota.ts; `$5` replaces the time.
 */
export const COUNT = `WITH quota AS MATERIALIZED (
    SELECT newest.*, requests, per_minute, per_day
    FROM unnest(${GIVEN_IDS}, string_to_array($2, ',')::int8[], string_to_array($3, ',')::int8[],
        string_to_array($4, ',')::int8[]) AS given (key_id, requests, per_minute, per_day),
      LATERAL (${NEWEST} FOR UPDATE) AS newest
  ), clock AS MATERIALIZED (
    SELECT coalesce($5::int8, ${NOW}) AS now FROM (SELECT count(*) FROM quota) AS locked
  ), counted AS (
    UPDATE quotas SET
      numbers[2] = quota.numbers[2] + requests,
      numbers[6] = quota.numbers[6] + requests,
      part = quota.part + (quota.numbers[6] + requests) / ${REQUESTS_PER_PART} - quota.numbers[6] / ${REQUESTS_PER_PART}
    FROM quota, clock WHERE quotas.key_id = quota.key_id AND quotas.part = quota.part AND quota.numbers[10] < 0
      AND quota.numbers[2] BETWEEN 1 AND per_minute - requests AND now - quota.numbers[1] BETWEEN 0 AND ${MINUTE_MS - 1}
      AND quota.numbers[6] BETWEEN 1 AND per_day - requests AND now - quota.numbers[5] BETWEEN 0 AND ${DAY_MS - 1}
    RETURNING quotas.key_id
  ) SELECT coalesce(string_agg(${row("quota")}, ';'), '') AS quotas, (SELECT now FROM clock) AS now,
      coalesce(string_agg(counted.key_id::text, ','), '') AS counted
    FROM quota LEFT JOIN counted USING (key_id)`;

/** A server that stood still since it looked for the row may find one with another part. */
const ADD = `INSERT INTO quotas (key_id, numbers, expires_at)
  SELECT key_id, $2::int8[], ${NOW} FROM unnest(${GIVEN_IDS}) AS given (key_id)
  WHERE NOT EXISTS (${NEWEST}) ORDER BY 1 ON CONFLICT DO NOTHING`;

const UPDATE = `UPDATE quotas SET numbers = given.numbers::int8[], expires_at = given.expires_at
  FROM (
    SELECT unnest(${GIVEN_IDS}) AS key_id, unnest(string_to_array($2, ',')::int8[]) AS part,
      unnest(string_to_array($3, ';')) AS numbers, unnest(string_to_array($4, ',')::int8[]) AS expires_at
  ) AS given WHERE quotas.key_id = given.key_id AND quotas.part = given.part`;

/** Deletes some expired quotas. */
export const DELETE_EXPIRED = `DELETE FROM quotas WHERE (key_id, part) IN (
  SELECT key_id, part FROM quotas WHERE expires_at < ${NOW} ORDER BY expires_at LIMIT ${MAX_PURGED} FOR UPDATE SKIP LOCKED)`;

export async function readQuotas(sql: SQL, ids: readonly number[]): Promise<QuotaRows> {
  return rowsOf(await select(sql, READ, [ids.join(",")]));
}

/** Counts requests where that only adds to open windows. The keys ascend, so that no two servers can deadlock. */
export async function countRequests(
  sql: SQL,
  keys: readonly RequestsOfKey[],
  testNow: number | undefined,
): Promise<CountedRows> {
  const selected = await select(sql, COUNT, [
    keys.map(({ keyId }) => keyId).join(","),
    keys.map(({ requests }) => requests.length).join(","),
    keys.map(({ limits }) => limits.perMinute).join(","),
    keys.map(({ limits }) => limits.perDay).join(","),
    testNow ?? null,
  ]);
  const { counted = "" } = selected ?? {};
  return { ...rowsOf(selected), counted: new Set(counted === "" ? [] : counted.split(",").map(Number)) };
}

interface Selected {
  readonly quotas: string;
  readonly now: bigint;
  readonly counted?: string;
}

async function select(
  sql: SQL,
  statement: string,
  values: readonly (string | number | null)[],
): Promise<Selected | undefined> {
  const [selected] = await sql.unsafe<Selected[]>(statement, [...values]);
  return selected;
}

function rowsOf(selected: Selected | undefined): QuotaRows {
  const { quotas = "", now = 0n } = selected ?? {};
  const rows = new Map<number, QuotaRow>();
  for (const each of quotas === "" ? [] : quotas.split(";")) {
    const [keyId = 0, part = 0, ...numbers] = each.split(",").map(Number);
    rows.set(keyId, { quota: fromStored(numbers), part });
  }
  return { rows, now: Number(now) };
}

/**
 * Sends a query now; by itself it waits until somebody awaits it. Queries that are sent together take one round trip.
 * `unsafe` without parameters is not sent before those before it have ended.
 */
function send<T>(query: SQL.Query<T>): SQL.Query<T> {
  return query.execute();
}

/**
 * Begins a transaction with locks of all rows, in the order of the keys. Rows that are missing are added by a statement
 * of its own, which holds no lock while it waits for that of another server.
 */
export async function lockQuotas(sql: ReservedSQL, ids: readonly number[]): Promise<QuotaRows> {
  const lock = async () => rowsOf(await select(sql, LOCK, [ids.join(",")]));
  let [, locked] = await Promise.all([send(sql`BEGIN`), lock()]);
  for (let attempt = 1; locked.rows.size < ids.length; attempt++) {
    if (attempt === MAX_ATTEMPTS)
      throw new Unavailable("PostgreSQL: rows of quotas are deleted again and again");
    const { rows } = locked;
    const missing = ids.filter((id) => !rows.has(id));
    const none = `{${toStored(newQuota()).join(",")}}`;
    const [, , , again] = await Promise.all([
      send(sql`COMMIT`),
      send(sql.unsafe(ADD, [missing.join(","), none])),
      send(sql`BEGIN`),
      lock(),
    ]);
    locked = again;
  }
  return locked;
}

/** Stores locked rows, and commits. */
export async function storeQuotas(sql: ReservedSQL, rows: QuotaRows["rows"]): Promise<void> {
  const quotas = [...rows].map(([keyId, { quota }]) => [keyId, quota] as const);
  const [ids = "", ...columns] = columnsOf(quotas);
  const parts = [...rows.values()].map(({ part }) => part).join(",");
  await Promise.all([send(sql.unsafe(UPDATE, [ids, parts, ...columns])), send(sql`COMMIT`)]);
}

/** Tables of release 1.3.0 have no parts. */
const READ_ALL = `SELECT ${SUMMARY} FROM (SELECT key_id, 0 AS part, numbers FROM quotas) AS quota`;
const ROWS_PER_INSERT = 1_000;
const PUT = `INSERT INTO quotas (key_id, numbers, expires_at)
  SELECT unnest(${GIVEN_IDS}), unnest(string_to_array($2, ';'))::int8[], unnest(string_to_array($3, ',')::int8[])
  ON CONFLICT (key_id, part) DO UPDATE SET numbers = excluded.numbers, expires_at = excluded.expires_at`;

/** The quotas of all keys, and the time of the clock that counts them. */
export interface QuotasAndTime {
  readonly quotas: KeyQuotas;
  readonly now: number;
}

export async function readAllQuotas(sql: SQL): Promise<QuotasAndTime> {
  const { rows, now } = rowsOf(await select(sql, READ_ALL, []));
  return { quotas: [...rows].map(([keyId, { quota }]) => [keyId, quota]), now };
}

/** Stores the quotas of keys in tables that no server uses. */
export async function putQuotas(sql: SQL, quotas: KeyQuotas): Promise<void> {
  for (let from = 0; from < quotas.length; from += ROWS_PER_INSERT)
    await sql.unsafe(PUT, columnsOf(quotas.slice(from, from + ROWS_PER_INSERT)));
}

/** The parameters of a statement: the identifiers, the numbers and the expiries. */
function columnsOf(quotas: KeyQuotas): string[] {
  const numbers = quotas.map(([, quota]) => `{${toStored(quota).join(",")}}`);
  return [
    quotas.map(([id]) => id).join(","),
    numbers.join(";"),
    quotas.map(([, quota]) => expiresAt(quota)).join(","),
  ];
}
