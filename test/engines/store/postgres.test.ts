import { petJsonOf } from "../../../src/petstore/pet-json.ts";
import { openExportStore } from "../../../src/store/postgres/transfer/export-store.ts";
import { openImportStore } from "../../../src/store/postgres/transfer/import-store.ts";
import { exportStoreConformance } from "../../conformance/export-store.ts";
import { importStoreConformance } from "../../conformance/import-store.ts";
import { storeConformance } from "../../conformance/store.ts";
import { emptyDatabase } from "./postgres-database.ts";

async function openStores() {
  const database = await emptyDatabase();
  const stores = await database.open();
  return {
    ...stores,
    url: database.url,
    petJson: petJsonOf(stores.store),
    another: () => database.open(),
    async reopen() {
      await stores.close();
      return (await database.open()).store;
    },
    close: () => database[Symbol.asyncDispose](),
  };
}

async function openTransferStores() {
  const stores = await openStores();
  const imports = openImportStore(stores.url, undefined);
  const exports = openExportStore(stores.url, undefined);
  return {
    ...stores,
    imports,
    exports,
    async close() {
      await imports.close();
      await exports.close();
      await stores.close();
    },
  };
}

storeConformance("PostgreSQL", openStores);
importStoreConformance("PostgreSQL", openTransferStores);
exportStoreConformance("PostgreSQL", openTransferStores);
