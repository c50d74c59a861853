/**
 * Advisory locks are numbers whose meaning their users agree on. These are pairs of numbers, so they differ from the
 * single numbers under which idempotent requests are locked.
 */
export const LOCK_SPACE = 0x70657473;

export const MIGRATIONS_LOCK = 1;
export const COPY_LOCK = 2;

/**
 * A common table expression that takes the lock for the next identifier of a table, and holds it until the transaction
 * ends. So identifiers become visible in ascending order, and a reader that continues after the last identifier it saw
 * misses none.
 *
 * The lock is the oid of the table, because another schema can have a table of the same name.
 */
export function nextIdLock(table: "pets" | "orders"): string {
  return `next_id_lock AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(${LOCK_SPACE}, '${table}'::regclass::oid::int))`;
}
