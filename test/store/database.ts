import { Database } from "bun:sqlite";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { temporaryFolder } from "./folder.ts";

/** A database of the store in a folder of its own, for tests that look behind the port. */
export function temporaryDatabase() {
  const folder = temporaryFolder();
  const path = folder.path("store.db");
  const connection = openDatabase(path, {
    migrations: MIGRATIONS,
    synchronous: "FULL",
    cacheKiB: 16 * 1024,
    busyTimeoutMs: 0,
  });
  const count = (table: string) => Number(connection.value(`SELECT count(*) FROM ${table}`));
  return { connection, path, count, [Symbol.dispose]: () => folder.remove() };
}

/** Does something while another process, as far as SQLite can tell, keeps all others from writing. */
export async function whileAnotherWrites(path: string, work: () => void | Promise<void>): Promise<void> {
  using database = new Database(path);
  database.run("BEGIN IMMEDIATE");
  await work();
}
