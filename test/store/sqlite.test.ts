import { openSqlite, type SqliteStores } from "../../src/store/sqlite/open-sqlite.ts";
import type { LogEvents } from "../../src/store/sqlite/write-ahead-log.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { storeConformance } from "../conformance/store.ts";
import { disposableDirectory } from "../disposable-directory.ts";

/** Opens the stores of a server or of a command. Others are commands beside it. */
async function openStores(server?: LogEvents) {
  const directory = disposableDirectory();
  const path = directory.path("store.db");
  const opened: SqliteStores[] = [];
  const open = async (options = {}) => {
    const stores = openSqlite(path, options);
    opened.push(stores);
    return stores;
  };
  const another = () => open();
  const closeAll = async () => {
    for (const stores of opened.splice(0)) await stores.close();
  };
  return {
    ...(await open({ server })),
    path,
    tables: sqliteTables(path),
    selectWaits: "SELECT synchronous >= 2 AS waits FROM pragma_synchronous",
    another,
    async reopen() {
      await closeAll();
      return open({ server });
    },
    async close() {
      await closeAll();
      directory.remove();
    },
  };
}

storeConformance("SQLite", () => openStores());
storeConformance("SQLite of a server", () => openStores({}));
