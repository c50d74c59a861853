import { expect, test } from "bun:test";
import type { IdempotentRequest } from "../../src/domain/ports.ts";
import { AT, addPet, DAY_MS, idsOf, refusalOf, rex, type WithStore, written } from "./store-fixture.ts";

const idempotentRequest: IdempotentRequest = {
  keyId: 1,
  idempotencyKey: "5c1f",
  fingerprint: "a".repeat(64),
};

export function attemptCases(withStore: WithStore): void {
  test(
    "an idempotentRequest that is repeated gets the same answer, and nothing is added",
    withStore(async (store) => {
      const first = written(await store.createPet(rex, AT, idempotentRequest));
      expect(first.replayed).toBe(false);
      for (const at of [AT, AT + 1, AT + DAY_MS - 1]) {
        expect(await store.createPet(rex, at, idempotentRequest)).toEqual({ ...first, replayed: true });
      }
      expect(idsOf(await store.listPets({ limit: 9 }))).toEqual([first.id]);
    }),
  );

  test(
    "a replay is byte for byte what was answered, although the pet and the order have changed since",
    withStore(async (store) => {
      const pet = written(await store.createPet({ ...rex, name: 'R\u00e9x "𝒳"' }, AT, idempotentRequest));
      const order = written(await store.placeOrder(pet.id, AT, idempotentRequest));
      await store.updateOrder(order.id, "completed");
      expect((await store.getPet(pet.id))?.status).toBe("sold");
      expect(await store.createPet(rex, AT, idempotentRequest)).toEqual({ ...pet, replayed: true });
      expect(await store.placeOrder(pet.id, AT, idempotentRequest)).toEqual({ ...order, replayed: true });
    }),
  );

  test(
    "a replay survives a restart",
    withStore(async (store, { reopen }) => {
      const first = written(await store.createPet(rex, AT, idempotentRequest));
      const again = await reopen();
      expect(await again.createPet(rex, AT, idempotentRequest)).toEqual({ ...first, replayed: true });
    }),
  );

  test(
    "idempotency_key_reused: another body under the same key, which adds nothing and keeps the first answer",
    withStore(async (store) => {
      const first = written(await store.createPet(rex, AT, idempotentRequest));
      const other = { ...idempotentRequest, fingerprint: "b".repeat(64) };
      expect(refusalOf(await store.createPet({ ...rex, name: "Max" }, AT, other))).toBe(
        "idempotency_key_reused",
      );
      expect(await store.createPet(rex, AT, idempotentRequest)).toEqual({ ...first, replayed: true });
      expect(idsOf(await store.listPets({ limit: 9 }))).toEqual([first.id]);
    }),
  );

  test(
    "attempts of another principal, under another key or at another operation are others",
    withStore(async (store) => {
      const pets = [
        written(await store.createPet(rex, AT, idempotentRequest)),
        written(await store.createPet(rex, AT, { ...idempotentRequest, keyId: 2 })),
        written(await store.createPet(rex, AT, { ...idempotentRequest, idempotencyKey: "5C1F" })),
      ];
      const order = written(await store.placeOrder(pets[0]?.id ?? 0n, AT, idempotentRequest));
      expect([...pets, order].map(({ replayed }) => replayed)).toEqual([false, false, false, false]);
      expect(idsOf(await store.listPets({ limit: 9 }))).toEqual(pets.map(({ id }) => id));
    }),
  );

  test(
    "an idempotentRequest is forgotten after 24 hours, and what comes then is kept anew",
    withStore(async (store) => {
      const first = written(await store.createPet(rex, AT, idempotentRequest));
      const other = { ...idempotentRequest, fingerprint: "b".repeat(64) };
      const second = written(await store.createPet(rex, AT + DAY_MS, other));
      expect(second).toMatchObject({ replayed: false });
      expect(second.id).toBeGreaterThan(first.id);
      expect(await store.createPet(rex, AT + DAY_MS + 1, other)).toEqual({ ...second, replayed: true });
    }),
  );

  test(
    "an idempotentRequest that was refused keeps nothing: repeated when it can succeed, it does",
    withStore(async (store) => {
      const petId = await addPet(store);
      const { id } = written(await store.placeOrder(petId, AT));
      expect(refusalOf(await store.placeOrder(petId, AT, idempotentRequest))).toBe("pet_not_available");
      await store.updateOrder(id, "cancelled");
      expect(written(await store.placeOrder(petId, AT, idempotentRequest)).replayed).toBe(false);
    }),
  );

  test(
    "an idempotentRequest that was refused does not bind its key to a body",
    withStore(async (store) => {
      expect(refusalOf(await store.placeOrder(99n, AT, idempotentRequest))).toBe("pet_not_found");
      const petId = await addPet(store);
      const other = { ...idempotentRequest, fingerprint: "b".repeat(64) };
      expect(written(await store.placeOrder(petId, AT, other)).replayed).toBe(false);
    }),
  );

  test(
    "idempotency_conflict: a repeat while the first runs; of fifty at once one is done, and none is done twice",
    withStore(async (store) => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => store.createPet(rex, AT, idempotentRequest)),
      );
      const [id, ...others] = idsOf(await store.listPets({ limit: 9 }));
      expect(others).toEqual([]);
      const done = answers.filter((answer) => refusalOf(answer) === undefined).map((a) => written(a));
      expect(done.filter(({ replayed }) => !replayed)).toHaveLength(1);
      for (const answer of done) expect(answer.id).toBe(id ?? 0n);
      // An engine may be quick enough to replay; what it may not do is anything else.
      const refusals = answers.map(refusalOf).filter((code) => code !== undefined);
      expect(new Set([...refusals, "idempotency_conflict"])).toEqual(new Set(["idempotency_conflict"]));
      expect(written(await store.createPet(rex, AT, idempotentRequest)).replayed).toBe(true);
    }),
  );

  test(
    "attempts under different keys at once do not get in each other's way",
    withStore(async (store) => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          store.createPet(rex, AT, { ...idempotentRequest, idempotencyKey: `k${i}` }),
        ),
      );
      expect(new Set(answers.map((answer) => written(answer).id)).size).toBe(50);
    }),
  );
}
