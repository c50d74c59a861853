import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/domain/usage-history.ts";
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

test("usageByKey: other work of the event loop goes on after each interval", async () => {
  const { usageHistory, close } = await openStores();
  const counts = { keyId: 1, admitted: 1, limited: 0, banned: 0, errors: 0, lastUsedAt: 0, byOperation: [] };
  const hours = Array.from({ length: 24 }, (_, i) => i * HOUR_MS);
  for (const [sequence, hour] of hours.entries())
    await usageHistory.addUsage({ writer: "server", sequence, hour, keys: [counts] });
  let iterations = 0;
  const countIterations = () => {
    iterations++;
    immediate = setImmediate(countIterations);
  };
  let immediate = setImmediate(countIterations);
  const totals = await usageHistory.usageByKey({ by: "hour", since: 0, until: 23 * HOUR_MS });
  clearImmediate(immediate);
  expect(totals).toMatchObject([{ keyId: 1, admitted: 24 }]);
  expect(iterations).toBeGreaterThanOrEqual(24);
  await close();
});
