import { describe, expect, test } from "bun:test";
import { idempotencyCases } from "./store-idempotency.ts";
import { AT, KEY_ID, addPet, idsOf, type OpenStore, rex, type WithStore, resultOf } from "./store-fixture.ts";
import { pageCases } from "./store-pages.ts";
import { modelCases } from "./store-model.ts";
import { orderOwnershipCases } from "./store-order-ownership.ts";
import { orderCases } from "./store-orders.ts";
import { petCases } from "./store-pets.ts";
import { petJsonCases } from "./pet-json.ts";

/** What every Store does, on whatever database. */
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
    pageCases(withStore);
    orderCases(withStore);
    orderOwnershipCases(withStore);
    idempotencyCases(withStore);
    petJsonCases(withStore);
    durabilityCases(withStore);
    modelCases(open);
  });
}

function durabilityCases(withStore: WithStore): void {
  test(
    "committed writes survive a restart, and identifiers continue after them",
    withStore(async (store, { reopen }) => {
      const first = await addPet(store, { name: "Ålfred", categoryId: 2n ** 63n - 1n });
      const second = await addPet(store);
      const order = resultOf(await store.placeOrder({ keyId: KEY_ID, petId: second }, AT));

      const again = await reopen();
      expect(await again.getPet(first)).toEqual({
        id: first,
        name: "Ålfred",
        categoryId: 2n ** 63n - 1n,
        status: "available",
      });
      expect((await again.getPet(second))?.status).toBe("pending");
      expect(idsOf(await again.listOrders(KEY_ID, { limit: 10 }))).toEqual([order.id]);
      expect(await addPet(again)).toBeGreaterThan(second);
    }),
  );

  test(
    "close finishes the writes already accepted",
    withStore(async (store, { reopen }) => {
      const writes = Array.from({ length: 100 }, () => store.createPet(rex, AT));
      const again = await reopen();
      const ids = (await Promise.all(writes)).map((result) => resultOf(result).id);
      expect(idsOf(await again.listPets({ limit: 100 }))).toEqual(ids.toSorted((a, b) => Number(a - b)));
    }),
  );

  test(
    "a closed store rejects writes",
    withStore(async (store, { reopen }) => {
      const again = await reopen();
      await expect(store.createPet(rex, AT)).rejects.toMatchObject({ name: "Unavailable" });
      expect(await again.listPets({ limit: 1 })).toEqual({ items: [], hasMore: false });
    }),
  );
}
