import { expect, test } from "bun:test";
import { AT, addPet, idsOf, rex, type WithStore, written } from "./store-fixture.ts";

export function givenUpCases(withStore: WithStore): void {
  test(
    "a write that is given up before its transaction begins is not done, and those beside it are",
    withStore(async (store) => {
      const ordered = await addPet(store);
      const free = await addPet(store);
      const { id: orderId } = written(await store.placeOrder(ordered, AT));
      const asked = new AbortController();
      const attempt = { keyId: 1, idempotencyKey: "k", fingerprint: "f" };
      const givenUp = [
        store.createPet(rex, AT, undefined, asked.signal),
        store.createPet(rex, AT, attempt, asked.signal),
        store.placeOrder(free, AT, undefined, asked.signal),
        store.updateOrder(orderId, "completed", asked.signal),
      ];
      const beside = store.createPet(rex, AT);
      asked.abort();
      const outcomes = await Promise.allSettled(givenUp);
      expect(outcomes.map(({ status }) => status)).toEqual(Array(4).fill("rejected"));

      const { id } = written(await beside);
      expect(idsOf(await store.listPets({ limit: 9 }))).toEqual([ordered, free, id]);
      expect((await store.getPet(free))?.status).toBe("available");
      expect((await store.getPet(ordered))?.status).toBe("pending");
      // Its key is free for the next attempt.
      expect(written(await store.createPet(rex, AT, attempt)).replayed).toBe(false);
    }),
  );

  test(
    "a write whose caller is still there is done",
    withStore(async (store) => {
      const { signal } = new AbortController();
      const pet = written(await store.createPet(rex, AT, undefined, signal));
      const order = written(await store.placeOrder(pet.id, AT, undefined, signal));
      await store.updateOrder(order.id, "completed", signal);
      expect((await store.getPet(pet.id))?.status).toBe("sold");
    }),
  );
}
