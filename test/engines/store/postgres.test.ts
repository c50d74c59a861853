import { ImportStore } from "../../../src/archive/import-store.ts";
import { postgresTables } from "../../../src/store/postgres/tables.ts";
import { importStoreConformance } from "../../conformance/import-store.ts";
import { storeConformance } from "../../conformance/store.ts";
import { tableStoreConformance } from "../../conformance/table-store.ts";
import { emptyDatabase } from "./postgres-database.ts";

async function openStores() {
  const database = await emptyDatabase();
  const stores = await database.open();
  return {
    ...stores,
    url: database.url,
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
  const tables = postgresTables({ url: stores.url, schema: "public" });
  const imports = new ImportStore(await tables.share());
  return {
    ...stores,
    tables,
    imports,
    async close() {
      await imports.close();
      await stores.close();
    },
  };
}

storeConformance("PostgreSQL", openStores);
importStoreConformance("PostgreSQL", openTransferStores);
tableStoreConformance("PostgreSQL", openTransferStores);
