import { describe } from "bun:test";
import { SqlKeyStore } from "../../src/store/api-keys.ts";
import { SQLITE_DIALECT, sqliteDatabase } from "../../src/store/sqlite/connection.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/store.ts";
import { sqliteTables } from "../../src/store/sqlite/tables.ts";
import { keyListConformance } from "../conformance/key-list.ts";
import { storeConformance } from "../conformance/store.ts";
import { testsOn } from "../conformance/store-fixture.ts";
import { openStoreDatabase } from "./sqlite-database.ts";
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

async function openWithSmallReads() {
  const opened = await openStores();
  const connection = openStoreDatabase(opened.path);
  const dialect = { ...SQLITE_DIALECT, maxPerRead: { keys: 2, intervals: 1 } };
  const keys = new SqlKeyStore({ ...sqliteDatabase(connection), dialect });
  const close = async () => {
    connection.close();
    await opened.close();
  };
  return { ...opened, keys, close };
}

describe("SQLite with more keys than a statement may read", () =>
  keyListConformance(testsOn(openWithSmallReads)));
