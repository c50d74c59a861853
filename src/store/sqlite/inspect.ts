import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { latestVersion } from "../migrations.ts";
import { isAtLeast, OLDEST_SQLITE } from "./database.ts";
import { MIGRATIONS } from "./migrations.ts";
import { inspectDatabase, withDatabase } from "./snapshot.ts";

interface SqliteState {
  /** Undefined if there is no database. */
  readonly database: (ReturnType<typeof inspectDatabase> & { readonly supportedVersion: number }) | undefined;
  /** The newest time in the data, in milliseconds since the epoch. */
  readonly newestTime: number | undefined;
}

/** Reads the whole database of the pets, orders and keys. */
export function inspectStore(path: string): SqliteState {
  if (!existsSync(path)) return { database: undefined, newestTime: undefined };
  const database = { ...inspectDatabase(path), supportedVersion: latestVersion(MIGRATIONS) };
  return { database, newestTime: database.problems.length > 0 ? undefined : newestTimeIn(path) };
}

function newestTimeIn(path: string): number | undefined {
  const time = withDatabase(path, (connection) => {
    const hasKeys = connection.value("SELECT 1 FROM sqlite_schema WHERE name = 'api_keys'");
    return hasKeys === undefined ? undefined : connection.value("SELECT max(created_at) FROM api_keys");
  });
  return typeof time === "bigint" ? Number(time) : undefined;
}

/** The version of SQLite, and whether it is one that the store accepts. */
export function sqliteVersion(): {
  readonly version: string;
  readonly isSupported: boolean;
  readonly oldest: string;
} {
  using database = new Database(":memory:");
  const version =
    database.query<{ version: string }, []>("SELECT sqlite_version() AS version").get()?.version ?? "0";
  return { version, isSupported: isAtLeast(version, OLDEST_SQLITE), oldest: OLDEST_SQLITE };
}
