/* How many rows the growth benchmark has, and about how many bytes. */

export const SCALES = [1, 10, 100] as const;
export type Scale = (typeof SCALES)[number];
export const DATABASES = ["sqlite", "postgres"] as const;
export type DatabaseName = (typeof DATABASES)[number];

export type GrowthRows = ReturnType<typeof rowsOf>;

/** The rows of a scale. The history grows by both of its sides, so that it has as many times the rows as the scale. */
export function rowsOf(scale: Scale) {
  const side = Math.sqrt(scale);
  return {
    pets: 100_000 * scale,
    availableEvery: 20,
    orders: 10_000 * scale,
    keys: 1_000 * scale,
    /** The keys that send requests in turn. */
    keysInTurn: 30 * scale,
    audit: 10_000 * scale,
    usage: { days: Math.round(40 * side), keys: Math.round(1_000 * side), hours: 48 },
  };
}

/** The bytes that a row takes with its indexes, roughly. */
const BYTES = {
  sqlite: { pets: 84, orders: 118, keys: 277, usage: 94, audit: 311 },
  postgres: { pets: 258, orders: 262, keys: 443, usage: 337, audit: 511 },
} as const;

export function bytesOf(scale: Scale, database: DatabaseName): number {
  const { pets, orders, keys, audit, usage } = rowsOf(scale);
  const bytes = BYTES[database];
  const usageRows = usage.keys * (usage.days + usage.hours);
  return (
    pets * bytes.pets +
    orders * bytes.orders +
    keys * bytes.keys +
    audit * bytes.audit +
    usageRows * bytes.usage
  );
}
