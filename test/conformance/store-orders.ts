import { expect, test } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/contract/json.ts";
import { encodeOrder } from "../../src/contract/resources.ts";
import { AT, KEY_ID, addPet, idsOf, rejectionCode, rex, type WithStore, resultOf } from "./store-fixture.ts";

export function orderCases(withStore: WithStore): void {
  test(
    "placeOrder: the body is the order as JSON, with the given time",
    withStore(async (store) => {
      const petId = await addPet(store);
      const { id, body, replayed } = resultOf(await store.placeOrder({ keyId: KEY_ID, petId }, AT));
      expect(id).toBe(1n);
      expect(replayed).toBe(false);
      const order = { id, petId, status: "placed", createdAt: "2026-11-15T09:30:00.000Z" } as const;
      expect(body).toBe(encodeOrder(order));
      expect(await store.listOrders(KEY_ID, { limit: 9 })).toStrictEqual({ items: [order], hasMore: false });
    }),
  );

  for (const status of ["available", undefined] as const) {
    test(
      `placeOrder: a pet with status ${status ?? "absent"} becomes pending`,
      withStore(async (store) => {
        const pet = status === undefined ? { name: "Rex", categoryId: 7n } : { ...rex, status };
        const { id } = resultOf(await store.createPet(pet, AT));
        resultOf(await store.placeOrder({ keyId: KEY_ID, petId: id }, AT));
        expect(await store.getPet(id)).toStrictEqual({ id, name: "Rex", categoryId: 7n, status: "pending" });
      }),
    );
  }

  for (const status of ["pending", "sold"] as const) {
    test(
      `placeOrder pet_not_available: a ${status} pet keeps its status, and no order is created`,
      withStore(async (store) => {
        const id = await addPet(store, { status });
        expect(rejectionCode(await store.placeOrder({ keyId: KEY_ID, petId: id }, AT))).toBe(
          "pet_not_available",
        );
        expect((await store.getPet(id))?.status).toBe(status);
        expect((await store.listOrders(KEY_ID, { limit: 9 })).items).toEqual([]);
      }),
    );
  }

  test(
    "placeOrder pet_not_found: identifiers that no pet has",
    withStore(async (store) => {
      const id = await addPet(store);
      for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
        expect(rejectionCode(await store.placeOrder({ keyId: KEY_ID, petId: other }, AT))).toBe(
          "pet_not_found",
        );
      }
      expect((await store.listOrders(KEY_ID, { limit: 9 })).items).toEqual([]);
    }),
  );

  test(
    "placeOrder: of fifty concurrent orders for one pet exactly one succeeds",
    withStore(async (store) => {
      const id = await addPet(store);
      const results = await Promise.all(
        Array.from({ length: 50 }, () => store.placeOrder({ keyId: KEY_ID, petId: id }, AT)),
      );
      const rejections = results.map(rejectionCode).filter((code) => code !== undefined);
      expect(rejections).toEqual(Array.from({ length: 49 }, () => "pet_not_available"));
      expect((await store.listOrders(KEY_ID, { limit: 100 })).items).toHaveLength(1);
    }),
  );

  for (const [status, after] of [
    ["completed", "sold"],
    ["cancelled", "available"],
  ] as const) {
    test(
      `updateOrder: ${status} is stored and makes the pet ${after}`,
      withStore(async (store) => {
        const petId = await addPet(store);
        const { id } = resultOf(await store.placeOrder({ keyId: KEY_ID, petId }, AT));
        const order = { id, petId, status, createdAt: "2026-11-15T09:30:00.000Z" };
        expect(await store.updateOrder(KEY_ID, id, status)).toStrictEqual(order);
        expect((await store.listOrders(KEY_ID, { limit: 9 })).items).toStrictEqual([order]);
        expect((await store.getPet(petId))?.status).toBe(after);
      }),
    );

    for (const next of ["completed", "cancelled"] as const) {
      test(
        `updateOrder order_closed: ${next} after ${status} changes nothing`,
        withStore(async (store) => {
          const petId = await addPet(store);
          const { id } = resultOf(await store.placeOrder({ keyId: KEY_ID, petId }, AT));
          await store.updateOrder(KEY_ID, id, status);
          expect(rejectionCode(await store.updateOrder(KEY_ID, id, next))).toBe("order_closed");
          expect((await store.listOrders(KEY_ID, { limit: 9 })).items[0]?.status).toBe(status);
          expect((await store.getPet(petId))?.status).toBe(after);
        }),
      );
    }
  }

  test(
    "updateOrder order_not_found: identifiers that no order has",
    withStore(async (store) => {
      const { id } = resultOf(await store.placeOrder({ keyId: KEY_ID, petId: await addPet(store) }, AT));
      for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
        expect(rejectionCode(await store.updateOrder(KEY_ID, other, "completed"))).toBe("order_not_found");
      }
      expect((await store.listOrders(KEY_ID, { limit: 9 })).items[0]?.status).toBe("placed");
    }),
  );

  test(
    "updateOrder: of twenty concurrent updates exactly one succeeds",
    withStore(async (store) => {
      const petId = await addPet(store);
      const { id } = resultOf(await store.placeOrder({ keyId: KEY_ID, petId }, AT));
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          store.updateOrder(KEY_ID, id, i % 2 === 0 ? "completed" : "cancelled"),
        ),
      );
      const ended = results.filter((result) => rejectionCode(result) === undefined);
      expect(ended).toEqual((await store.listOrders(KEY_ID, { limit: 9 })).items as typeof ended);
    }),
  );

  test(
    "placeOrder: a pet can be ordered again after its order was cancelled, and both orders are stored",
    withStore(async (store) => {
      const petId = await addPet(store);
      const first = resultOf(await store.placeOrder({ keyId: KEY_ID, petId }, AT)).id;
      await store.updateOrder(KEY_ID, first, "cancelled");
      const second = resultOf(await store.placeOrder({ keyId: KEY_ID, petId }, AT)).id;
      expect(second).toBeGreaterThan(first);
      expect(idsOf(await store.listOrders(KEY_ID, { limit: 9 }))).toEqual([first, second]);
      expect((await store.getPet(petId))?.status).toBe("pending");
    }),
  );
}
