import { pathsOf, type StorageConfig } from "../config/config.ts";
import { prepareDataDirectory } from "../data-directory.ts";
import type { ExportStore, ImportStore } from "../domain/data-transfer.ts";

/** Creates the database if it is missing. Servers may be running on it. */
export async function openImportStore(storage: StorageConfig): Promise<ImportStore> {
  if (storage.databaseUrl === undefined) {
    prepareDataDirectory(storage);
    const { openImportStore } = await import("../store/sqlite/transfer/import-store.ts");
    return openImportStore(pathsOf(storage).store);
  }
  await migrate(storage.databaseUrl, storage);
  const { openImportStore } = await import("../store/postgres/transfer/import-store.ts");
  return openImportStore(storage.databaseUrl, storage.environment);
}

/** Servers may be running on the database. */
export async function openExportStore(storage: StorageConfig): Promise<ExportStore> {
  if (storage.databaseUrl === undefined) {
    prepareDataDirectory(storage);
    const { openExportStore } = await import("../store/sqlite/transfer/export-store.ts");
    return openExportStore(pathsOf(storage).store);
  }
  await migrate(storage.databaseUrl, storage);
  const { openExportStore } = await import("../store/postgres/transfer/export-store.ts");
  return openExportStore(storage.databaseUrl, storage.environment);
}

async function migrate(databaseUrl: string, { environment }: StorageConfig): Promise<void> {
  const { migratePostgres } = await import("../store/postgres/store.ts");
  await migratePostgres(databaseUrl, environment);
}
