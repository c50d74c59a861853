import { Database } from "bun:sqlite";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sql/migration-steps.ts";
import { disposableDirectory } from "../disposable-directory.ts";

/** The store's database, as a process opens it that does not wait for another one. */
export function openStoreDatabase(path: string) {
  return openDatabase(path, {
    migrations: SQLITE_MIGRATIONS,
    synchronous: "FULL",
    cacheKiB: 16 * 1024,
    busyTimeoutMs: 0,
  });
}

/** The store's database in a temporary directory, for tests that look behind the port. */
export function temporaryDatabase() {
  const directory = disposableDirectory();
  const path = directory.path("store.db");
  const connection = openStoreDatabase(path);
  const count = (table: string) => Number(connection.value(`SELECT count(*) FROM ${table}`));
  return {
    connection,
    path,
    count,
    [Symbol.dispose]() {
      connection.close();
      directory.remove();
    },
  };
}

/** Holds the write lock during the work, as another process does. */
export async function whileLocked(path: string, work: () => void | Promise<void>): Promise<void> {
  using database = new Database(path);
  database.run("BEGIN IMMEDIATE");
  await work();
}
