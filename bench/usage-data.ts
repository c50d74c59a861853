import { HOUR_MS, startOf } from "../src/domain/usage-history.ts";
import type { Connection } from "../src/store/sqlite/connection.ts";
import { packUsage } from "../src/store/sqlite/usage-history.ts";

const DAY_MS = 24 * HOUR_MS;
/** Of each row. */
export const OPERATIONS_JSON = '{"listPets":[700,3],"createPet":[200,1],"getPet":[90,9]}';

export interface HistorySize {
  readonly keys: number;
  readonly days: number;
  readonly hours: number;
  readonly now: number;
}

/** Fills SQLite with a history in which every key was used in every interval. */
export function fillHistory(connection: Connection, { keys, days, hours, now }: HistorySize): void {
  const fill = (table: string, from: number, step: number, count: number) =>
    connection.run(`INSERT INTO ${table}
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${count}),
        k(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM k WHERE key < ${keys})
      SELECT ${from} + i * ${step}, key, 990, key % 10, 0, 13, '${OPERATIONS_JSON}' FROM n CROSS JOIN k`);
  connection.transaction(() => {
    fill("usage_days", startOf("day", now) - (days - 1) * DAY_MS, DAY_MS, days);
    fill("usage_hours", startOf("hour", now) - (hours - 1) * HOUR_MS, HOUR_MS, hours);
    packUsage(connection);
    connection.run(`INSERT INTO key_last_used
      WITH RECURSIVE k(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM k WHERE key < ${keys}) SELECT key, ${now} FROM k`);
    connection.run("INSERT INTO deprecated_use SELECT 'getPet', key_id, last_used_at FROM key_last_used");
  });
}
