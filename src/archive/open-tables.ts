import { type DataLocation, NoDatabase } from "../data-location.ts";
import type { TableReader, TableStore } from "../store/sql/table-store.ts";

/** Opens the database with the pets, orders and keys. Servers may be running on it. */
export async function tableStoreOf({ directory, postgres }: DataLocation): Promise<TableStore> {
  if (postgres === undefined) {
    directory.prepare();
    directory.rejectLostDatabase();
    const { sqliteTables } = await import("../store/sqlite/table-store.ts");
    return sqliteTables(directory.files.database);
  }
  const { postgresTables } = await import("../store/postgres/table-store.ts");
  return postgresTables(postgres);
}

/** Opens a database for reading. Throws NoDatabase if there is none. */
export async function tableReaderOf(location: DataLocation): Promise<TableReader> {
  location.rejectMissingDatabase();
  const tables = await tableStoreOf(location);
  if (!(await tables.exists())) throw new NoDatabase(location);
  return tables.read();
}
