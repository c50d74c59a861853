import { expect, test } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/contract/json.ts";
import { encodeOrder } from "../../src/contract/resources.ts";
import { AT, addPet, idsOf, refusalOf, rex, type WithStore, written } from "./store-fixture.ts";

export function orderCases(withStore: WithStore): void {
  test(
    "placeOrder: the answer is the order as JSON, with the instant it was given",
    withStore(async (store) => {
      const petId = await addPet(store);
      const { id, body, replayed } = written(await store.placeOrder(petId, AT));
      expect(id).toBe(1n);
      expect(replayed).toBe(false);
      const order = { id, petId, status: "placed", createdAt: "2026-11-15T09:30:00.000Z" } as const;
      expect(body).toBe(encodeOrder(order));
      expect(await store.listOrders({ limit: 9 })).toStrictEqual({ items: [order], more: false });
    }),
  );

  for (const status of ["available", undefined] as const) {
    test(
      `placeOrder: a pet with status ${status ?? "absent"} becomes pending`,
      withStore(async (store) => {
        const pet = status === undefined ? { name: "Rex", categoryId: 7n } : { ...rex, status };
        const { id } = written(await store.createPet(pet, AT));
        written(await store.placeOrder(id, AT));
        expect(await store.getPet(id)).toStrictEqual({ id, name: "Rex", categoryId: 7n, status: "pending" });
      }),
    );
  }

  for (const status of ["pending", "sold"] as const) {
    test(
      `placeOrder pet_not_available: a pet that is ${status} stays so, and no order is kept`,
      withStore(async (store) => {
        const id = await addPet(store, { status });
        expect(refusalOf(await store.placeOrder(id, AT))).toBe("pet_not_available");
        expect((await store.getPet(id))?.status).toBe(status);
        expect((await store.listOrders({ limit: 9 })).items).toEqual([]);
      }),
    );
  }

  test(
    "placeOrder pet_not_found: for identifiers that no pet has",
    withStore(async (store) => {
      const id = await addPet(store);
      for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
        expect(refusalOf(await store.placeOrder(other, AT))).toBe("pet_not_found");
      }
      expect((await store.listOrders({ limit: 9 })).items).toEqual([]);
    }),
  );

  test(
    "placeOrder: fifty at once for one pet, exactly one gets it",
    withStore(async (store) => {
      const id = await addPet(store);
      const answers = await Promise.all(Array.from({ length: 50 }, () => store.placeOrder(id, AT)));
      const refusals = answers.map(refusalOf).filter((code) => code !== undefined);
      expect(refusals).toEqual(Array.from({ length: 49 }, () => "pet_not_available"));
      expect((await store.listOrders({ limit: 100 })).items).toHaveLength(1);
    }),
  );

  for (const [status, after] of [
    ["completed", "sold"],
    ["cancelled", "available"],
  ] as const) {
    test(
      `updateOrder: ${status} is kept and makes the pet ${after}`,
      withStore(async (store) => {
        const petId = await addPet(store);
        const { id } = written(await store.placeOrder(petId, AT));
        const order = { id, petId, status, createdAt: "2026-11-15T09:30:00.000Z" };
        expect(await store.updateOrder(id, status)).toStrictEqual(order);
        expect((await store.listOrders({ limit: 9 })).items).toStrictEqual([order]);
        expect((await store.getPet(petId))?.status).toBe(after);
      }),
    );

    for (const next of ["completed", "cancelled"] as const) {
      test(
        `updateOrder order_closed: ${next} after ${status} changes nothing`,
        withStore(async (store) => {
          const petId = await addPet(store);
          const { id } = written(await store.placeOrder(petId, AT));
          await store.updateOrder(id, status);
          expect(refusalOf(await store.updateOrder(id, next))).toBe("order_closed");
          expect((await store.listOrders({ limit: 9 })).items[0]?.status).toBe(status);
          expect((await store.getPet(petId))?.status).toBe(after);
        }),
      );
    }
  }

  test(
    "updateOrder order_not_found: for identifiers that no order has",
    withStore(async (store) => {
      const { id } = written(await store.placeOrder(await addPet(store), AT));
      for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
        expect(refusalOf(await store.updateOrder(other, "completed"))).toBe("order_not_found");
      }
      expect((await store.listOrders({ limit: 9 })).items[0]?.status).toBe("placed");
    }),
  );

  test(
    "updateOrder: twenty at once end an order once",
    withStore(async (store) => {
      const petId = await addPet(store);
      const { id } = written(await store.placeOrder(petId, AT));
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => store.updateOrder(id, i % 2 === 0 ? "completed" : "cancelled")),
      );
      const ended = answers.filter((answer) => refusalOf(answer) === undefined);
      expect(ended).toEqual((await store.listOrders({ limit: 9 })).items as typeof ended);
    }),
  );

  test(
    "placeOrder: a pet whose order was cancelled can be ordered again, and keeps both orders",
    withStore(async (store) => {
      const petId = await addPet(store);
      const first = written(await store.placeOrder(petId, AT)).id;
      await store.updateOrder(first, "cancelled");
      const second = written(await store.placeOrder(petId, AT)).id;
      expect(second).toBeGreaterThan(first);
      expect(idsOf(await store.listOrders({ limit: 9 }))).toEqual([first, second]);
      expect((await store.getPet(petId))?.status).toBe("pending");
    }),
  );
}
