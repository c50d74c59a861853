import { expect } from "bun:test";
import type { Store } from "../../src/domain/ports.ts";
import { AT, addPet, rejectionCode, resultOf, type TestCase } from "./store-fixture.ts";

const OWNER = 1;
const OTHER = 2;

async function placeFor(store: Store, keyId: number): Promise<{ id: bigint; petId: bigint }> {
  const petId = await addPet(store);
  return { id: resultOf(await store.placeOrder({ keyId, petId }, AT)).id, petId };
}

const ordersOf = async (store: Store, keyId: number) => (await store.listOrders(keyId, { limit: 100 })).items;

/** The model has the rest. */
export function orderCases(test: TestCase): void {
  test("listOrders: `hasMore` is about the orders of the key, also with a status", async ({ store }) => {
    for (const keyId of [OWNER, OWNER, OTHER]) await placeFor(store, keyId);
    for (const filter of [{}, { status: "placed" }] as const) {
      const pages = [1, 2].map((limit) => store.listOrders(OWNER, { limit, ...filter }));
      expect((await Promise.all(pages)).map(({ hasMore }) => hasMore)).toEqual([true, false]);
    }
  });

  test("placeOrder: of fifty concurrent orders of two keys for one pet one succeeds, and the others list none", async (opened) => {
    const { store } = opened;
    const petId = await addPet(store);
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => store.placeOrder({ keyId: 1 + (i % 2), petId }, AT)),
    );
    const rejections = results.map(rejectionCode).filter((code) => code !== undefined);
    expect(rejections).toEqual(Array.from({ length: 49 }, () => "pet_not_available"));
    expect([...(await ordersOf(store, OWNER)), ...(await ordersOf(store, OTHER))]).toHaveLength(1);
  });

  test("updateOrder: of concurrent updates one of its own key succeeds, and the pet's status follows it", async (opened) => {
    const { store } = opened;
    for (let round = 0; round < 10; round++) {
      const { id, petId } = await placeFor(store, OWNER);
      const [completed, others, cancelled] = await Promise.all([
        store.updateOrder({ keyId: OWNER, id, status: "completed" }, AT),
        store.updateOrder({ keyId: OTHER, id, status: "cancelled" }, AT),
        store.updateOrder({ keyId: OWNER, id, status: "cancelled" }, AT),
      ]);
      expect(rejectionCode(others)).toBe("order_not_found");
      const isCompleted = (await store.getOrder(OWNER, id))?.status === "completed";
      expect([completed, cancelled].map(rejectionCode)).toEqual(
        isCompleted ? [undefined, "order_closed"] : ["order_closed", undefined],
      );
      expect((await store.getPet(petId))?.status).toBe(isCompleted ? "sold" : "available");
    }
  });
}
