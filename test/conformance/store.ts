import { describe, expect, test } from "bun:test";
import { auditStoreConformance } from "./audit-store.ts";
import { keyDetailsConformance } from "./key-details.ts";
import { keyListConformance } from "./key-list.ts";
import { keyStoreConformance } from "./key-store.ts";
import { operatorStoreConformance } from "./operator-store.ts";
import { settingsStoreConformance } from "./settings-store.ts";
import { idempotencyCases } from "./store-idempotency.ts";
import {
  AT,
  KEY_ID,
  addPet,
  idsOf,
  type OpenStores,
  resultOf,
  rex,
  withOpened,
  type WithStores,
} from "./store-fixture.ts";
import { modelCases } from "./store-model.ts";
import { orderCases } from "./store-orders.ts";
import { pageCases } from "./store-pages.ts";
import { petCases } from "./store-pets.ts";
import { usageHistoryConformance } from "./usage-history.ts";

/** What all stores of a database do, on whatever database. */
export function storeConformance(name: string, open: OpenStores): void {
  const withStores = withOpened(open);
  describe(`${name} as a Store`, () => {
    petCases(withStores);
    pageCases(withStores);
    orderCases(withStores);
    idempotencyCases(withStores);
    durabilityCases(withStores);
    modelCases(open);
  });
  describe(`${name} as a KeyStore`, () => {
    keyStoreConformance(withStores);
    keyDetailsConformance(withStores);
    keyListConformance(withStores);
  });
  describe(`${name} as an OperatorStore`, () => operatorStoreConformance(withStores));
  describe(`${name} as an AuditStore`, () => auditStoreConformance(withStores));
  describe(`${name} as a SettingsStore`, () => settingsStoreConformance(withStores));
  describe(`${name} as a UsageHistoryStore`, () => usageHistoryConformance(withStores));
}

function durabilityCases(withStores: WithStores): void {
  test(
    "committed writes survive a restart, and identifiers continue after them",
    withStores(async ({ store, reopen }) => {
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
      expect(await again.getOrder(KEY_ID + 1, order.id)).toBeUndefined();
      expect(await addPet(again)).toBeGreaterThan(second);
    }),
  );

  test(
    "close finishes the writes already accepted, and rejects later ones",
    withStores(async ({ store, reopen }) => {
      const writes = Array.from({ length: 100 }, () => store.createPet(rex, AT));
      const again = await reopen();
      await expect(store.createPet(rex, AT)).rejects.toMatchObject({ name: "Unavailable" });
      const ids = (await Promise.all(writes)).map((result) => resultOf(result).id);
      expect(idsOf(await again.listPets({ limit: 101 }))).toEqual(ids.toSorted((a, b) => Number(a - b)));
    }),
  );
}
