import { petJsonOf } from "../../../src/http/pet-json.ts";
import { auditStoreConformance } from "../../conformance/audit-store.ts";
import { keyDetailsConformance } from "../../conformance/key-details.ts";
import { keyStoreConformance } from "../../conformance/key-store.ts";
import { operatorStoreConformance } from "../../conformance/operator-store.ts";
import { settingsStoreConformance } from "../../conformance/settings-store.ts";
import { storeConformance } from "../../conformance/store.ts";
import { usageHistoryConformance } from "../../conformance/usage-history.ts";
import { emptyDatabase } from "./postgres-database.ts";

storeConformance("PostgreSQL", async () => {
  const database = await emptyDatabase();
  const first = await database.open();
  return {
    store: first.store,
    operators: first.operators,
    petJson: petJsonOf(first.store),
    async reopen() {
      await first.close();
      return (await database.open()).store;
    },
    close: () => database[Symbol.asyncDispose](),
  };
});

keyStoreConformance("PostgreSQL", async () => {
  const database = await emptyDatabase();
  return {
    keys: (await database.open()).keys,
    another: async () => (await database.open()).keys,
    close: () => database[Symbol.asyncDispose](),
  };
});

operatorStoreConformance("PostgreSQL", async () => {
  const database = await emptyDatabase();
  return {
    ...(await database.open()),
    another: () => database.open(),
    close: () => database[Symbol.asyncDispose](),
  };
});

keyDetailsConformance("PostgreSQL", async () => {
  const database = await emptyDatabase();
  const { keys, audit } = await database.open();
  return { keys, audit, close: () => database[Symbol.asyncDispose]() };
});

auditStoreConformance("PostgreSQL", async () => {
  const database = await emptyDatabase();
  return {
    audit: (await database.open()).audit,
    another: async () => (await database.open()).audit,
    close: () => database[Symbol.asyncDispose](),
  };
});

settingsStoreConformance("PostgreSQL", async () => {
  const database = await emptyDatabase();
  return {
    settings: (await database.open()).settings,
    another: async () => (await database.open()).settings,
    close: () => database[Symbol.asyncDispose](),
  };
});

usageHistoryConformance("PostgreSQL", async () => {
  const database = await emptyDatabase();
  return {
    history: (await database.open()).usageHistory,
    another: async () => (await database.open()).usageHistory,
    close: () => database[Symbol.asyncDispose](),
  };
});
