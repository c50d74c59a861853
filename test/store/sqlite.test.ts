import { expect, test } from "bun:test";
import { DAY_MS } from "../../src/domain/rate-limit.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/store.ts";
import { sqliteTables } from "../../src/store/sqlite/tables.ts";
import { storeConformance } from "../conformance/store.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

async function openStores() {
  const directory = temporaryDirectory();
  const path = directory.path("store.db");
  const opened: SqliteStores[] = [];
  const another = async () => {
    const stores = openSqlite(path);
    opened.push(stores);
    return stores;
  };
  const closeAll = async () => {
    for (const stores of opened.splice(0)) await stores.close();
  };
  return {
    ...(await another()),
    path,
    tables: sqliteTables(path),
    another,
    async reopen() {
      await closeAll();
      return (await another()).store;
    },
    async close() {
      await closeAll();
      directory.remove();
    },
  };
}

storeConformance("SQLite", openStores);

test("usageByKey: other work of the event loop goes on after each sum of 2,500 rows", async () => {
  const { usageHistory, close } = await openStores();
  const counts = { admitted: 1, limited: 0, banned: 0, errors: 0, lastUsedAt: 0, byOperation: [] };
  const keys = Array.from({ length: 250 }, (_, i) => ({ ...counts, keyId: i + 1 }));
  // Of 400 days, a statement has 7 keys at most.
  const until = 399 * DAY_MS;
  for (const [sequence, hour] of [0, until].entries())
    await usageHistory.addUsage({ writer: "server", sequence, hour, keys });
  let iterations = 0;
  const countIterations = () => {
    iterations++;
    immediate = setImmediate(countIterations);
  };
  let immediate = setImmediate(countIterations);
  const totals = await usageHistory.usageByKey({ by: "day", since: 0, until });
  clearImmediate(immediate);
  expect(totals).toMatchObject(keys.map(({ keyId }) => ({ keyId, admitted: 2 })));
  expect(iterations).toBeGreaterThanOrEqual(35);
  await close();
});
