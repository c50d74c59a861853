import { openSqlite, type SqliteStores } from "../../src/store/sqlite/store.ts";
import { ImportStore } from "../../src/archive/import-store.ts";
import { sqliteTables } from "../../src/store/sqlite/tables.ts";
import { openUsageStore } from "../../src/store/sqlite/usage-store.ts";
import { importStoreConformance } from "../conformance/import-store.ts";
import { storeConformance } from "../conformance/store.ts";
import { tableStoreConformance } from "../conformance/table-store.ts";
import { usageStoreConformance } from "../conformance/usage-store.ts";
import { temporaryFolder } from "./temporary-folder.ts";

async function openStores() {
  const folder = temporaryFolder();
  const path = folder.path("store.db");
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
    another,
    async reopen() {
      await closeAll();
      return (await another()).store;
    },
    async close() {
      await closeAll();
      folder.remove();
    },
  };
}

async function openTransferStores() {
  const stores = await openStores();
  const tables = sqliteTables(stores.path);
  const imports = new ImportStore(await tables.share());
  return {
    ...stores,
    tables,
    imports,
    async close() {
      await imports.close();
      await stores.close();
    },
  };
}

storeConformance("SQLite", openStores);
importStoreConformance("SQLite", openTransferStores);
tableStoreConformance("SQLite", openTransferStores);

usageStoreConformance("SQLite", () => {
  const folder = temporaryFolder();
  let usageStore = openUsageStore(folder.path("limits.db"));
  return {
    usageStore,
    reopen() {
      usageStore.close();
      usageStore = openUsageStore(folder.path("limits.db"));
      return usageStore;
    },
    close() {
      usageStore.close();
      folder.remove();
    },
  };
});
