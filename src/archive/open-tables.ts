import { NoDatabase, rejectMissingDatabase, type StorageConfig } from "../config/storage.ts";
import { postgresOf } from "../adapters/postgres-options.ts";
import type { TableReader, TableStore } from "../store/sql/table-store.ts";

/** Opens the database with the pets, orders and keys. Servers may be running on it. */
export async function tableStoreOf(storage: StorageConfig): Promise<TableStore> {
  if (storage.databaseUrl === undefined) {
    const { directory } = storage;
    directory.prepare();
    directory.rejectLostDatabase();
    const { sqliteTables } = await import("../store/sqlite/table-store.ts");
    return sqliteTables(directory.files.database);
  }
  const { postgresTables } = await import("../store/postgres/table-store.ts");
  return postgresTables(postgresOf(storage));
}

/** Opens a database for reading. Throws NoDatabase if there is none. */
export async function tableReaderOf(storage: StorageConfig): Promise<TableReader> {
  rejectMissingDatabase(storage);
  const tables = await tableStoreOf(storage);
  if (!(await tables.exists())) throw new NoDatabase(storage);
  return tables.read();
}
