import { expect, test } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/contract/json.ts";
import type { Store } from "../../src/domain/ports.ts";
import { AT, addPet, idsOf, rejectionCode, resultOf, type WithStore } from "./store-fixture.ts";

const OWNER = 1;
const OTHER = 2;
/** The largest identifier that a key can have. */
const LARGE = Number.MAX_SAFE_INTEGER;

async function placeFor(store: Store, keyId: number): Promise<{ id: bigint; petId: bigint }> {
  const petId = await addPet(store);
  return { id: resultOf(await store.placeOrder({ keyId, petId }, AT)).id, petId };
}

/** An order belongs to the key that placed it, and does not exist for any other key. */
export function orderOwnershipCases(withStore: WithStore): void {
  test(
    "getOrder: the key that placed an order gets it, in its current state; another key gets nothing",
    withStore(async (store) => {
      const { id, petId } = await placeFor(store, OWNER);
      const order = { id, petId, status: "placed", createdAt: "2026-11-15T09:30:00.000Z" } as const;
      expect(await store.getOrder(OWNER, id)).toStrictEqual(order);
      expect(await store.getOrder(OTHER, id)).toBeUndefined();
      await store.updateOrder(OWNER, id, "completed");
      expect(await store.getOrder(OWNER, id)).toStrictEqual({ ...order, status: "completed" });
      expect(await store.getOrder(OTHER, id)).toBeUndefined();
    }),
  );

  test(
    "getOrder: identifiers that no order has",
    withStore(async (store) => {
      const { id } = await placeFor(store, OWNER);
      for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
        expect(await store.getOrder(OWNER, other)).toBeUndefined();
      }
    }),
  );

  for (const status of ["placed", "completed", "cancelled"] as const) {
    test(
      `updateOrder order_not_found: another key's ${status} order, which stays as it is`,
      withStore(async (store) => {
        const { id, petId } = await placeFor(store, OWNER);
        if (status !== "placed") await store.updateOrder(OWNER, id, status);
        const petStatus = (await store.getPet(petId))?.status;
        for (const update of ["completed", "cancelled"] as const) {
          expect(rejectionCode(await store.updateOrder(OTHER, id, update))).toBe("order_not_found");
        }
        expect((await store.getOrder(OWNER, id))?.status).toBe(status);
        expect((await store.getPet(petId))?.status).toBe(petStatus);
      }),
    );
  }

  test(
    "listOrders: each key lists its own, filters its own, and `hasMore` is about those",
    withStore(async (store) => {
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
      expect(idsOf(await store.listOrders(OWNER, { limit: 9, after: others[0] ?? 0n }))).toEqual(
        own.slice(1),
      );

      await store.updateOrder(OTHER, others[1] ?? 0n, "cancelled");
      const cancelled = { limit: 9, status: "cancelled" } as const;
      expect(idsOf(await store.listOrders(OTHER, cancelled))).toEqual(others.slice(1, 2));
      expect(idsOf(await store.listOrders(OWNER, cancelled))).toEqual([]);
      expect(idsOf(await store.listOrders(OWNER, { limit: 9, status: "placed" }))).toEqual(own);
      expect((await store.listOrders(OTHER, { limit: 1, status: "placed" })).hasMore).toBe(true);
      expect((await store.listOrders(OTHER, { limit: 2, status: "placed" })).hasMore).toBe(false);
    }),
  );

  test(
    "placeOrder: a pet whose order was cancelled can be ordered by another key; each key keeps its own order",
    withStore(async (store) => {
      const { id: first, petId } = await placeFor(store, OWNER);
      expect(rejectionCode(await store.placeOrder({ keyId: OTHER, petId }, AT))).toBe("pet_not_available");
      await store.updateOrder(OWNER, first, "cancelled");
      const second = resultOf(await store.placeOrder({ keyId: OTHER, petId }, AT)).id;
      expect(idsOf(await store.listOrders(OWNER, { limit: 9 }))).toEqual([first]);
      expect(idsOf(await store.listOrders(OTHER, { limit: 9 }))).toEqual([second]);
    }),
  );

  test(
    "placeOrder: of two keys that order the same pet at once, one gets the order and the other lists none",
    withStore(async (store) => {
      for (let round = 0; round < 10; round++) {
        const petId = await addPet(store);
        const keys = [100 + round, 200 + round];
        const results = await Promise.all(
          keys.flatMap((keyId) => [1, 2, 3].map(() => store.placeOrder({ keyId, petId }, AT))),
        );
        const placed = results.filter((result) => rejectionCode(result) === undefined).map(resultOf);
        const listed = await Promise.all(keys.map((keyId) => store.listOrders(keyId, { limit: 9 })));
        expect(listed.flatMap(idsOf)).toEqual(placed.map(({ id }) => id));
        expect(placed).toHaveLength(1);
      }
    }),
  );

  test(
    "updateOrder: while another key tries to end an order, the update of its own key succeeds",
    withStore(async (store) => {
      for (let round = 0; round < 10; round++) {
        const { id, petId } = await placeFor(store, OWNER);
        const [before, own, after] = await Promise.all([
          store.updateOrder(OTHER, id, "cancelled"),
          store.updateOrder(OWNER, id, "completed"),
          store.updateOrder(OTHER, id, "cancelled"),
        ]);
        expect([before, own, after].map(rejectionCode)).toEqual([
          "order_not_found",
          undefined,
          "order_not_found",
        ]);
        expect((await store.getPet(petId))?.status).toBe("sold");
      }
    }),
  );

  test(
    "updateOrder: of a completion and a cancellation at once one succeeds, and the pet's status follows it",
    withStore(async (store) => {
      for (let round = 0; round < 10; round++) {
        const { id, petId } = await placeFor(store, OWNER);
        const results = await Promise.all([
          store.updateOrder(OWNER, id, "completed"),
          store.updateOrder(OWNER, id, "cancelled"),
        ]);
        const status = (await store.getOrder(OWNER, id))?.status;
        expect(
          results.map((result) => rejectionCode(result) ?? ("status" in result && result.status)),
        ).toEqual(status === "completed" ? ["completed", "order_closed"] : ["order_closed", "cancelled"]);
        expect((await store.getPet(petId))?.status).toBe(status === "completed" ? "sold" : "available");
      }
    }),
  );

  test(
    "an order belongs to its key after a restart, and a replay of it to the key as well",
    withStore(async (store, { reopen }) => {
      const petId = await addPet(store);
      const request = { keyId: OWNER, idempotencyKey: "5c1f", fingerprint: "a".repeat(64) };
      const { id } = resultOf(await store.placeOrder({ keyId: OWNER, petId }, AT, request));
      const again = await reopen();
      expect(resultOf(await again.placeOrder({ keyId: OWNER, petId }, AT, request))).toMatchObject({
        id,
        replayed: true,
      });
      const others = { ...request, keyId: OTHER };
      expect(rejectionCode(await again.placeOrder({ keyId: OTHER, petId }, AT, others))).toBe(
        "pet_not_available",
      );
      expect(idsOf(await again.listOrders(OWNER, { limit: 9 }))).toEqual([id]);
      expect(await again.getOrder(OTHER, id)).toBeUndefined();
    }),
  );
}
