import { openSqlite, type SqliteStores } from "../../src/store/sqlite/store.ts";
import { openExportStore } from "../../src/store/sqlite/transfer/export-store.ts";
import { openImportStore } from "../../src/store/sqlite/transfer/import-store.ts";
import { openUsageStore } from "../../src/store/sqlite/usage-store.ts";
import { exportStoreConformance } from "../conformance/export-store.ts";
import { importStoreConformance } from "../conformance/import-store.ts";
import { storeConformance } from "../conformance/store.ts";
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
  const imports = openImportStore(stores.path);
  const exports = openExportStore(stores.path);
  return {
    ...stores,
    imports,
    exports,
    async close() {
      await imports.close();
      await exports.close();
      await stores.close();
    },
  };
}

storeConformance("SQLite", openStores);
importStoreConformance("SQLite", openTransferStores);
exportStoreConformance("SQLite", openTransferStores);

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
