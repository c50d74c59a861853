import { describe, expect } from "bun:test";
import { auditStoreConformance } from "./audit-store.ts";
import { keyDetailsConformance } from "./key-details.ts";
import { keyListConformance } from "./key-list.ts";
import { keyStoreConformance } from "./key-store.ts";
import { correctionStoreConformance } from "./correction-store.ts";
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
  testsOn,
  type TestCase,
} from "./store-fixture.ts";
import { modelCases } from "./store-model.ts";
import { orderCases } from "./store-orders.ts";
import { pageCases } from "./store-pages.ts";
import { petCases } from "./store-pets.ts";
import { usageHistoryConformance } from "./usage-history.ts";

/** What all stores of a database do, on whatever database. */
export function storeConformance(name: string, open: OpenStores): void {
  const test = testsOn(open);
  describe(`${name} as a Store`, () => {
    petCases(test);
    pageCases(test);
    orderCases(test);
    idempotencyCases(test);
    durabilityCases(test);
    modelCases(open);
  });
  describe(`${name} as a KeyStore`, () => {
    keyStoreConformance(test);
    keyDetailsConformance(test);
    keyListConformance(test);
  });
  describe(`${name} as a CorrectionStore`, () => correctionStoreConformance(test));
  describe(`${name} as an OperatorStore`, () => operatorStoreConformance(test));
  describe(`${name} as an AuditStore`, () => auditStoreConformance(test));
  describe(`${name} as a SettingsStore`, () => settingsStoreConformance(test));
  describe(`${name} as a UsageHistoryStore`, () => usageHistoryConformance(test));
}

function durabilityCases(test: TestCase): void {
  test("committed writes survive a restart, and identifiers continue after them", async (opened) => {
    const { store, reopen } = opened;
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
  });

  test("close finishes the writes already accepted, and rejects later ones", async ({ store, reopen }) => {
    const writes = Array.from({ length: 100 }, () => store.createPet(rex, AT));
    const again = await reopen();
    await expect(store.createPet(rex, AT)).rejects.toMatchObject({ name: "Unavailable" });
    const ids = (await Promise.all(writes)).map((result) => resultOf(result).id);
    expect(idsOf(await again.listPets({ limit: 101 }))).toEqual(ids.toSorted((a, b) => Number(a - b)));
  });
}
