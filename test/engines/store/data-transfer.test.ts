import { openExportStore as openPostgresExport } from "../../../src/store/postgres/transfer/export-store.ts";
import { openImportStore as openPostgresImport } from "../../../src/store/postgres/transfer/import-store.ts";
import { openExportStore as openSqliteExport } from "../../../src/store/sqlite/transfer/export-store.ts";
import { openImportStore as openSqliteImport } from "../../../src/store/sqlite/transfer/import-store.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite-store.ts";
import { exportStoreConformance } from "../../conformance/export-store.ts";
import { importStoreConformance } from "../../conformance/import-store.ts";
import { emptyDatabase } from "./postgres-database.ts";
import { temporaryFolder } from "../../store/temporary-folder.ts";

async function openOnSqlite() {
  const folder = temporaryFolder();
  const path = folder.path("store.db");
  const stores = openSqlite(path);
  const imports = openSqliteImport(path);
  const exports = openSqliteExport(path);
  return {
    ...stores,
    imports,
    exports,
    async close() {
      await imports.close();
      await exports.close();
      await stores.close();
      folder.remove();
    },
  };
}

async function openOnPostgres() {
  const database = await emptyDatabase();
  const stores = await database.open();
  const imports = openPostgresImport(database.url, undefined);
  const exports = openPostgresExport(database.url, undefined);
  return {
    ...stores,
    imports,
    exports,
    async close() {
      await imports.close();
      await exports.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

importStoreConformance("SQLite", openOnSqlite);
importStoreConformance("PostgreSQL", openOnPostgres);
exportStoreConformance("SQLite", openOnSqlite);
exportStoreConformance("PostgreSQL", openOnPostgres);
