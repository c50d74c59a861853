import { expect, test } from "bun:test";
import { openDatabase } from "../../src/store/sqlite/connection.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite-store.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const STEP = "packed sums of usage, deprecated operations of keys";
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const HOUR = Date.UTC(2026, 10, 15, 9);
const KEYS = 250;

/** 30 hours of every key, and their days, as the release before stores them. */
function fill(run: (sql: string) => void): void {
  const keys = `WITH RECURSIVE k(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM k WHERE id < ${KEYS}),
    n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 29)`;
  run(`INSERT INTO usage_hours ${keys} SELECT ${HOUR} - i * ${HOUR_MS}, id, id, 1, 0, 0, '{}' FROM k, n`);
  run(`INSERT INTO usage_days SELECT start / ${DAY_MS} * ${DAY_MS}, key_id, sum(admitted), sum(limited), 0, 0,
    iif(key_id % 100 = 7, '{"getPet":[1,0]}', '{"listPets":[1,0]}') FROM usage_hours GROUP BY 1, 2`);
}

test("SQLite: usage that the release before stored adds up, and its calls of deprecated operations are known", async () => {
  using folder = temporaryFolder();
  const before = openDatabase(folder.path("a.db"), {
    migrations: MIGRATIONS.slice(
      0,
      MIGRATIONS.findIndex(({ name }) => name === STEP),
    ),
    synchronous: "FULL",
    cacheKiB: 1024,
    busyTimeoutMs: 0,
  });
  fill((sql) => before.run(sql));
  before.close();
  const { usageHistory, close } = openSqlite(folder.path("a.db"));
  const day = { by: "hour", since: HOUR - 23 * HOUR_MS, until: HOUR } as const;
  const totals = await usageHistory.usageByKey(day);
  expect(totals).toHaveLength(KEYS);
  expect(totals[0]).toEqual({ keyId: KEYS, admitted: 24 * KEYS, limited: 24, banned: 0, errors: 0 });
  const days = { by: "day", since: HOUR - DAY_MS, until: HOUR } as const;
  expect((await usageHistory.usageByKey({ ...days, limit: 1 }))[0]).toMatchObject({ admitted: 30 * KEYS });
  const today = Date.UTC(2026, 10, 15);
  expect([...(await usageHistory.lastDeprecatedUse(today))]).toEqual([
    [7, today],
    [107, today],
    [207, today],
  ]);
  await close();
});
