import { expect } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/api/json.ts";
import { encodeOrder } from "../../src/domain/resources.ts";
import type { Store } from "../../src/domain/ports.ts";
import { AT, addPet, idsOf, rejectionCode, resultOf, rex, type TestCase } from "./store-fixture.ts";

const OWNER = 1;
const OTHER = 2;
/** The largest identifier that a key can have. */
const LARGE = Number.MAX_SAFE_INTEGER;

async function placeFor(store: Store, keyId: number): Promise<{ id: bigint; petId: bigint }> {
  const petId = await addPet(store);
  return { id: resultOf(await store.placeOrder({ keyId, petId }, AT)).id, petId };
}

const ordersOf = async (store: Store, keyId: number) => (await store.listOrders(keyId, { limit: 100 })).items;

export function orderCases(test: TestCase): void {
  test("placeOrder: the body is the order as JSON, with the given time; pets that are available become pending", async (opened) => {
    const { store } = opened;
    const { status: _, ...withoutStatus } = rex;
    for (const pet of [rex, withoutStatus]) {
      const { id: petId } = resultOf(await store.createPet(pet, AT));
      const { id, body, replayed } = resultOf(await store.placeOrder({ keyId: OWNER, petId }, AT));
      expect({ id, replayed }).toEqual({ id: petId, replayed: false });
      const order = { id, petId, status: "placed", createdAt: "2026-11-15T09:30:00.000Z" } as const;
      expect(body).toBe(encodeOrder(order));
      expect((await ordersOf(store, OWNER)).at(-1)).toStrictEqual(order);
      expect(await store.getOrder(OWNER, id)).toStrictEqual(order);
      expect(await store.getPet(petId)).toStrictEqual({ id: petId, ...rex, status: "pending" });
    }
  });

  test("placeOrder pet_not_available: a pending or sold pet keeps its status, and no order is created", async (opened) => {
    const { store } = opened;
    for (const status of ["pending", "sold"] as const) {
      const petId = await addPet(store, { status });
      expect(rejectionCode(await store.placeOrder({ keyId: OWNER, petId }, AT))).toBe("pet_not_available");
      expect((await store.getPet(petId))?.status).toBe(status);
    }
    expect(await ordersOf(store, OWNER)).toEqual([]);
  });

  test("pet_not_found and order_not_found: identifiers that no pet and no order has", async ({ store }) => {
    const { id } = await placeFor(store, OWNER);
    for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
      const placed = await store.placeOrder({ keyId: OWNER, petId: other }, AT);
      expect(rejectionCode(placed)).toBe("pet_not_found");
      expect(
        rejectionCode(await store.updateOrder({ keyId: OWNER, id: other, status: "completed" }, AT)),
      ).toBe("order_not_found");
      expect(await store.getOrder(OWNER, other)).toBeUndefined();
    }
    expect(await ordersOf(store, OWNER)).toMatchObject([{ id, status: "placed" }]);
  });

  for (const [status, after] of [
    ["completed", "sold"],
    ["cancelled", "available"],
  ] as const) {
    test(`updateOrder: ${status} is stored, makes the pet ${after}, and cannot be changed again`, async (opened) => {
      const { store, corrections } = opened;
      const { id, petId } = await placeFor(store, OWNER);
      const order = { id, petId, status, createdAt: "2026-11-15T09:30:00.000Z" };
      expect(await store.updateOrder({ keyId: OWNER, id, status }, AT + 7)).toStrictEqual(order);
      expect(await corrections.getOrder(id)).toMatchObject({ closedAt: "2026-11-15T09:30:00.007Z" });
      for (const next of ["completed", "cancelled"] as const) {
        expect(rejectionCode(await store.updateOrder({ keyId: OWNER, id, status: next }, AT))).toBe(
          "order_closed",
        );
      }
      expect(await ordersOf(store, OWNER)).toStrictEqual([order]);
      expect((await store.getPet(petId))?.status).toBe(after);
    });
  }

  test("an order of another key, whatever its status, does not exist and stays as it is", async (opened) => {
    const { store } = opened;
    for (const status of ["placed", "completed", "cancelled"] as const) {
      const { id, petId } = await placeFor(store, OWNER);
      if (status !== "placed") await store.updateOrder({ keyId: OWNER, id, status }, AT);
      const petStatus = (await store.getPet(petId))?.status;
      expect(await store.getOrder(OTHER, id)).toBeUndefined();
      for (const update of ["completed", "cancelled"] as const) {
        expect(rejectionCode(await store.updateOrder({ keyId: OTHER, id, status: update }, AT))).toBe(
          "order_not_found",
        );
      }
      expect((await store.getOrder(OWNER, id))?.status).toBe(status);
      expect((await store.getPet(petId))?.status).toBe(petStatus);
    }
  });

  test("listOrders: each key lists its own, filters its own, and `hasMore` is about those", async (opened) => {
    const { store } = opened;
    const placed: bigint[][] = [[], [], []];
    for (const keyId of [OWNER, OTHER, OWNER, LARGE, OTHER, OWNER, OTHER]) {
      const { id } = await placeFor(store, keyId);
      placed[[OWNER, OTHER, LARGE].indexOf(keyId)]?.push(id);
    }
    const [own = [], others = [], large = []] = placed;
    expect(idsOf(await store.listOrders(OWNER, { limit: 9 }))).toEqual(own);
    expect(idsOf(await store.listOrders(OTHER, { limit: 9 }))).toEqual(others);
    expect(idsOf(await store.listOrders(LARGE, { limit: 9 }))).toEqual(large);
    expect(await store.listOrders(4, { limit: 9 })).toEqual({ items: [], hasMore: false });

    expect((await store.listOrders(OWNER, { limit: 2 })).hasMore).toBe(true);
    expect((await store.listOrders(OWNER, { limit: 3 })).hasMore).toBe(false);
    // Another key's order is a position like any other.
    expect(idsOf(await store.listOrders(OWNER, { limit: 9, after: others[0] ?? 0n }))).toEqual(own.slice(1));

    await store.updateOrder({ keyId: OTHER, id: others[1] ?? 0n, status: "cancelled" }, AT);
    const cancelled = { limit: 9, status: "cancelled" } as const;
    expect(idsOf(await store.listOrders(OTHER, cancelled))).toEqual(others.slice(1, 2));
    expect(idsOf(await store.listOrders(OWNER, cancelled))).toEqual([]);
    expect(idsOf(await store.listOrders(OWNER, { limit: 9, status: "placed" }))).toEqual(own);
    expect((await store.listOrders(OTHER, { limit: 1, status: "placed" })).hasMore).toBe(true);
    expect((await store.listOrders(OTHER, { limit: 2, status: "placed" })).hasMore).toBe(false);
  });

  test("placeOrder: a pet whose order was cancelled can be ordered by another key; each key keeps its own order", async (opened) => {
    const { store } = opened;
    const { id: first, petId } = await placeFor(store, OWNER);
    await store.updateOrder({ keyId: OWNER, id: first, status: "cancelled" }, AT);
    const second = resultOf(await store.placeOrder({ keyId: OTHER, petId }, AT)).id;
    expect(second).toBeGreaterThan(first);
    expect(idsOf(await store.listOrders(OWNER, { limit: 9 }))).toEqual([first]);
    expect(idsOf(await store.listOrders(OTHER, { limit: 9 }))).toEqual([second]);
    expect((await store.getPet(petId))?.status).toBe("pending");
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
