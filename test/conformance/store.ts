import { describe, expect, test } from "bun:test";
import { attemptCases } from "./store-attempts.ts";
import { AT, addPet, idsOf, type OpenStore, rex, type WithStore, written } from "./store-fixture.ts";
import { listingCases } from "./store-listings.ts";
import { modelCases } from "./store-model.ts";
import { orderCases } from "./store-orders.ts";
import { petCases } from "./store-pets.ts";
import { petJsonCases } from "./pet-json.ts";

/** What any Store must do. Nothing here knows which engine it runs on; answers are always awaited. */
export function storeConformance(name: string, open: OpenStore): void {
  const withStore: WithStore = (work) => async () => {
    const opened = await open();
    try {
      await work(opened.store, opened);
    } finally {
      await opened.close();
    }
  };
  describe(`${name} as a Store`, () => {
    petCases(withStore);
    listingCases(withStore);
    orderCases(withStore);
    attemptCases(withStore);
    petJsonCases(withStore);
    durabilityCases(withStore);
    modelCases(open);
  });
}

function durabilityCases(withStore: WithStore): void {
  test(
    "what was answered is there after a restart, and identifiers go on from there",
    withStore(async (store, { reopen }) => {
      const first = await addPet(store, { name: "Ålfred", categoryId: 2n ** 63n - 1n });
      const second = await addPet(store);
      const order = written(await store.placeOrder(second, AT));

      const again = await reopen();
      expect(await again.getPet(first)).toEqual({
        id: first,
        name: "Ålfred",
        categoryId: 2n ** 63n - 1n,
        status: "available",
      });
      expect((await again.getPet(second))?.status).toBe("pending");
      expect(idsOf(await again.listOrders({ limit: 10 }))).toEqual([order.id]);
      expect(await addPet(again)).toBeGreaterThan(second);
    }),
  );

  test(
    "close finishes the writes that were accepted",
    withStore(async (store, { reopen }) => {
      const writes = Array.from({ length: 100 }, () => store.createPet(rex, AT));
      const again = await reopen();
      const ids = (await Promise.all(writes)).map((answer) => written(answer).id);
      expect(idsOf(await again.listPets({ limit: 100 }))).toEqual(ids.toSorted((a, b) => Number(a - b)));
    }),
  );

  test(
    "a store that was closed takes no more writes",
    withStore(async (store, { reopen }) => {
      const again = await reopen();
      await expect(store.createPet(rex, AT)).rejects.toMatchObject({ name: "Unavailable" });
      expect(await again.listPets({ limit: 1 })).toEqual({ items: [], more: false });
    }),
  );
}
