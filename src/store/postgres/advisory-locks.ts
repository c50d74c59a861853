/**
 * Advisory locks are numbers that mean what their users agree on, in a database. These come in pairs, so that they
 * never meet the single numbers under which attempts are locked.
 */
export const LOCK_SPACE = 0x70657473;

/** Where tables are yet to be made. */
export const MIGRATIONS_LOCK = 1;

/**
 * Waits for the turn to take an identifier of a table, and keeps it until the row is committed and seen by all. So
 * identifiers appear in their order: whoever has seen one will never find a smaller one that was not there before, and
 * a reader who goes on after the last one misses nothing.
 *
 * Goes by the number of the table, since another schema may have a table of the same name.
 */
export function turnFor(table: "pets" | "orders"): string {
  return `turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(${LOCK_SPACE}, '${table}'::regclass::oid::int))`;
}
