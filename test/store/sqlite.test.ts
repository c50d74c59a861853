import { openSqlite, type SqliteStores } from "../../src/store/sqlite/open-sqlite.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { storeConformance } from "../conformance/store.ts";
import { disposableDirectory } from "../disposable-directory.ts";

async function openStores() {
  const directory = disposableDirectory();
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
    selectWaits: "SELECT synchronous >= 2 AS waits FROM pragma_synchronous",
    another,
    async reopen() {
      await closeAll();
      return another();
    },
    async close() {
      await closeAll();
      directory.remove();
    },
  };
}

storeConformance("SQLite", openStores);
