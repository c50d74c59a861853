import { postgresTables } from "../../../src/store/postgres/table-store.ts";
import { storeConformance } from "../../conformance/store.ts";
import { emptyDatabase, makeOlder } from "./postgres-database.ts";

async function openStores() {
  const database = await emptyDatabase();
  const stores = await database.open();
  return {
    ...stores,
    tables: postgresTables({ url: database.url, schema: "public" }),
    selectWaits: "SELECT (current_setting('synchronous_commit') <> 'off')::int AS waits",
    another: () => database.open(),
    pass: (ms: number) => makeOlder(database, ms),
    async reopen() {
      await stores.close();
      return database.open();
    },
    close: () => database[Symbol.asyncDispose](),
  };
}

storeConformance("PostgreSQL", openStores);
