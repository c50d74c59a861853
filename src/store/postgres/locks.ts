import type { SQL } from "bun";
import { scheduler } from "../../runtime/scheduler.ts";

/**
 * The first of the two numbers of each advisory lock of this program. Idempotent requests are locked by single numbers,
 * which differ from all pairs.
 */
export const LOCK_SPACE = 0x70657473;

export const MIGRATIONS_LOCK = 1;
/** Its holder writes to tables that are not published yet. */
export const NEW_TABLES_LOCK = 2;

/** Takes a lock that is held until the session ends. Returns whether it became free in time. */
export function takeLock(sql: SQL, lock: number, maxMs: number): Promise<boolean> {
  return pollUntil(true, maxMs, async () => {
    const [{ locked }] = await sql<[{ locked: boolean }]>`
      SELECT pg_try_advisory_lock(${LOCK_SPACE}, ${lock}) AS locked`;
    return locked;
  });
}

const POLL_MS = 50;

/** Repeats `read` until it returns the wanted value, for up to `maxMs`. Returns the last value. */
export async function pollUntil<T>(wanted: T, maxMs: number, read: () => Promise<T>): Promise<T> {
  const deadline = scheduler.now() + maxMs;
  for (;;) {
    const value = await read();
    if (value === wanted || scheduler.now() > deadline) return value;
    await scheduler.sleep(POLL_MS);
  }
}

/**
 * A common table expression that takes the lock for the next identifier of a table, and holds it until the transaction
 * ends. So identifiers become visible in ascending order, and a reader that continues after the last identifier it saw
 * misses none.
 *
 * The lock is the oid of the table, because another schema can have a table of the same name.
 */
export function nextIdLock(table: string): string {
  return `next_id_lock AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(${LOCK_SPACE}, '${table}'::regclass::oid::int))`;
}
