import { type Contents, contentsOf } from "../../src/archive/contents.ts";
import { join } from "node:path";
import { type PostgresTables, postgresTables } from "../../src/store/postgres/table-store.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import type { TableStore } from "../../src/store/sql/table-store.ts";

/** Reads the contents of a database. */
export async function contentsIn(store: TableStore): Promise<Contents> {
  await using reader = await store.read();
  return await contentsOf(reader);
}

/** The database of SQLite in the data directory of a server. */
export const sqliteIn = (dataDir: string): TableStore => sqliteTables(join(dataDir, "production.db"));

/** The tables of production on PostgreSQL. */
export const postgresIn = (url: string): PostgresTables => postgresTables({ url, schema: "production" });
