import { petJsonOf } from "../../src/http/pet-json.ts";
import { keyStoreConformance } from "../conformance/key-store.ts";
import { storeConformance } from "../conformance/store.ts";
import { emptyPlace } from "./postgres-database.ts";

storeConformance("PostgreSQL", async () => {
  const place = await emptyPlace();
  const first = await place.open();
  return {
    store: first.store,
    petJson: petJsonOf(first.store),
    async reopen() {
      await first.close();
      return (await place.open()).store;
    },
    close: () => place[Symbol.asyncDispose](),
  };
});

keyStoreConformance("PostgreSQL", async () => {
  const place = await emptyPlace();
  return {
    keys: (await place.open()).keys,
    another: async () => (await place.open()).keys,
    close: () => place[Symbol.asyncDispose](),
  };
});
