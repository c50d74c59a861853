/*
 * Rows as skewed as those of a shop become after years, for the growth benchmark and for the tests of what a page
 * reads. Both databases run the same statements.
 */

import { DAY_MS, HOUR_MS } from "../src/text/time-units.ts";

export interface RowCounts {
  readonly pets: number;
  readonly orders: number;
  readonly audit: number;
  /** Which pets are available: those with a multiple of this even number. Without it, only some of the first are. */
  readonly availableEvery?: number;
}

/** Up to this number, rows are varied. What they have and later rows do not have stays rare when the table grows. */
export const VARIED_ROWS = 8_000;
/** The share of the orders that one key has made of one pet. */
const SHARE_OF_ONE = 0.75;

/** A table with the numbers `n` from 1 to `count`, in the SQL of a database. */
export type Numbers = (count: number) => string;

export const SQLITE_NUMBERS: Numbers = (count) =>
  `(WITH RECURSIVE all_n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM all_n WHERE n < ${count}) SELECT n FROM all_n)`;
export const POSTGRES_NUMBERS: Numbers = (count) => `generate_series(1::bigint, ${count}) AS n`;

/** The keys, and the last intervals in which each of the first ones was used. */
export interface AllRowCounts extends RowCounts {
  readonly keys: number;
  readonly usage: { readonly keys: number; readonly days: number; readonly hours: number };
}

/** Statements that fill the tables of everything that grows, which are empty. `now` is the time of the last use. */
export function fillAllStatements(
  { keys, usage, ...rows }: AllRowCounts,
  numbers: Numbers,
  now: number,
): readonly string[] {
  return [
    ...fillStatements(rows, numbers),
    ...fillKeyStatements(keys, numbers, now),
    ...fillUsageStatements(usage, numbers, now),
  ];
}

/** Statements that fill the tables of pets, orders and audit entries, which are empty. */
export function fillStatements(
  { pets, orders, audit, availableEvery }: RowCounts,
  numbers: Numbers,
): readonly string[] {
  const ofOne = SHARE_OF_ONE * orders;
  const available = availableEvery === undefined ? "" : `WHEN n % ${availableEvery} = 0 THEN 'available'`;
  return [
    // Nearly all pets are in two categories and sold; as many as before are not when there are more.
    `INSERT INTO pets (name, category_id, status)
      SELECT 'Rex', CASE WHEN n % 2 = 1 THEN 1 WHEN n > ${VARIED_ROWS} THEN 2 ELSE n % 90 END,
        CASE WHEN n % 2 = 1 THEN 'sold' ${available}
          WHEN n % 50 > 0 OR n > ${VARIED_ROWS} THEN 'sold' WHEN n % 100 = 0 THEN NULL ELSE 'available' END
      FROM ${numbers(pets)}`,
    // One key has cancelled all orders of one pet but the last.
    `INSERT INTO orders (pet_id, key_id, status, created_at)
      SELECT CASE WHEN n <= ${ofOne} THEN 1 ELSE n END, CASE WHEN n <= ${ofOne} THEN 1 ELSE n % 50 END,
        CASE WHEN n = ${ofOne} THEN 'placed' WHEN n <= ${ofOne} THEN 'cancelled' ELSE 'completed' END, n
      FROM ${numbers(orders)}`,
    // Most entries have one action, operator, actor and target.
    `INSERT INTO audit (at, actor, operator, action, target_kind, target_id)
      SELECT n, CASE WHEN n % 7000 = 0 THEN 'console' ELSE 'admin API' END,
        CASE WHEN n % 3000 = 0 THEN 'ann' ELSE 'bot' END,
        CASE WHEN n % 6000 = 0 THEN 'key.revoked' ELSE 'key.updated' END, 'key',
        CASE WHEN n % 90 = 0 THEN n ELSE 1 END
      FROM ${numbers(audit)}`,
  ];
}

/** The revision of the last of so many keys. */
export const lastRevision = (keys: number) => 1_000 + keys;

/** Statements that add keys with owners, labels and a secret each. One in 50 is revoked, one in 70 is disabled. */
export function fillKeyStatements(keys: number, numbers: Numbers, now: number): readonly string[] {
  const zeros = "0".repeat(64);
  const createdAt = now - 500 * DAY_MS;
  return [
    `INSERT INTO api_keys (name, plan, created_at, revoked_at, disabled_at, revision, owner, labels)
      SELECT 'Customer ' || n, CASE n % 3 WHEN 0 THEN 'free' WHEN 1 THEN 'pro' ELSE 'business' END,
        ${createdAt} + n * 1000, CASE WHEN n % 50 = 0 THEN ${now} END, CASE WHEN n % 70 = 0 THEN ${now} END,
        1000 + n, 'owner' || n || '@example.com', '["team-' || (n % 40) || '","region-' || (n % 7) || '"]'
      FROM ${numbers(keys)}`,
    `INSERT INTO key_secrets (hash, key_id, hint, issued_at)
      SELECT substr('${zeros}' || id, length('${zeros}' || id) - 63), id, 'pet_live_abcd…wxyz', ${createdAt}
      FROM api_keys WHERE id NOT IN (SELECT key_id FROM key_secrets)`,
    `UPDATE key_revision SET revision = ${lastRevision(keys)}`,
  ];
}

/** Statements that add keys with limits that are never reached, whose secrets have these hashes. */
export function fillUnlimitedKeyStatements(
  hashes: readonly string[],
  { after, at }: { readonly after: number; readonly at: number },
  numbers: Numbers,
): readonly string[] {
  const values = hashes.map((hash, i) => `('${hash}', ${after + i + 1})`).join(", ");
  return [
    `INSERT INTO api_keys (name, plan, per_minute, per_day, created_at, revision)
      SELECT 'Unlimited ' || n, 'enterprise', 1000000000, 1000000000, ${at}, ${after} + n FROM ${numbers(hashes.length)}`,
    `INSERT INTO key_secrets (hash, key_id, hint, issued_at)
      SELECT column1, id, 'pet_live_abcd…wxyz', ${at} FROM (VALUES ${values}) AS given JOIN api_keys ON revision = column2`,
    `UPDATE key_revision SET revision = ${after + hashes.length}`,
  ];
}

const OPERATION_COUNTS = '{"listPets":[700,3],"createPet":[200,1],"getPet":[90,9]}';

/** Statements that add a history in which each of the first `keys` keys was used in each of the last intervals. */
export function fillUsageStatements(
  { keys, days, hours }: AllRowCounts["usage"],
  numbers: Numbers,
  now: number,
): readonly string[] {
  const fill = (table: string, length: number, count: number) => `
    INSERT INTO ${table} (start, key_id, admitted, limited, banned, errors, operations)
      SELECT ${now - (now % length) - count * length} + i.n * ${length}, k.n, 990, k.n % 10, 0, 13, '${OPERATION_COUNTS}'
      FROM (SELECT n FROM ${numbers(count)}) AS i CROSS JOIN (SELECT n FROM ${numbers(keys)}) AS k`;
  return [
    fill("usage_days", DAY_MS, days),
    fill("usage_hours", HOUR_MS, hours),
    `INSERT INTO key_last_used (key_id, last_used_at) SELECT n, ${now} FROM ${numbers(keys)}`,
    "INSERT INTO deprecated_use (operation, key_id, last_used_at) SELECT 'getPet', key_id, last_used_at FROM key_last_used",
  ];
}
