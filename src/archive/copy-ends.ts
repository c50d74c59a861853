import { existsSync } from "node:fs";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import {
  postgresTablesExist,
  type PostgresTablesOptions,
  readPostgresTables,
  writePostgresTables,
} from "../store/postgres/transfer/table-copy.ts";
import { readSqliteTables, writeSqliteTables } from "../store/sqlite/transfer/table-copy.ts";
import type { CopyEnd } from "./copy-store.ts";

export function sqliteEnd(storage: StorageConfig): CopyEnd {
  const { store } = pathsOf(storage);
  return {
    exists: async () => existsSync(store),
    read: async () => readSqliteTables(store),
    write: async (source) => writeSqliteTables(store, source),
  };
}

export function postgresEnd(options: PostgresTablesOptions): CopyEnd {
  return {
    exists: () => postgresTablesExist(options),
    read: () => readPostgresTables(options),
    write: (source) => writePostgresTables(options, source),
  };
}
