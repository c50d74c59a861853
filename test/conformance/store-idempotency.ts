import { expect } from "bun:test";
import type { IdempotentRequest } from "../../src/domain/ports.ts";
import {
  AT,
  KEY_ID,
  addPet,
  DAY_MS,
  idsOf,
  rejectionCode,
  rex,
  type TestCase,
  resultOf,
} from "./store-fixture.ts";

const request: IdempotentRequest = {
  keyId: 1,
  idempotencyKey: "5c1f",
  fingerprint: "a".repeat(64),
};

export function idempotencyCases(test: TestCase): void {
  test("a repeated request gets the first result to the byte, after changes and a restart too, and creates nothing", async (opened) => {
    const { store, reopen } = opened;
    const pet = resultOf(await store.createPet({ ...rex, name: 'R\u00e9x "𝒳"' }, AT, request));
    const order = resultOf(await store.placeOrder({ keyId: KEY_ID, petId: pet.id }, AT, request));
    await store.updateOrder({ keyId: KEY_ID, id: order.id, status: "completed" }, AT);
    expect((await store.getPet(pet.id))?.status).toBe("sold");
    const again = await reopen();
    for (const at of [AT, AT + DAY_MS - 1]) {
      expect(await again.createPet(rex, at, request)).toEqual({ ...pet, replayed: true });
      expect(await again.placeOrder({ keyId: KEY_ID, petId: pet.id }, at, request)).toEqual({
        ...order,
        replayed: true,
      });
    }
    expect(idsOf(await again.listPets({ limit: 9 }))).toEqual([pet.id]);
  });

  test("idempotency_key_reused: another body with the same key creates nothing, and the first result remains", async (opened) => {
    const { store } = opened;
    const first = resultOf(await store.createPet(rex, AT, request));
    const other = { ...request, fingerprint: "b".repeat(64) };
    expect(rejectionCode(await store.createPet({ ...rex, name: "Max" }, AT, other))).toBe(
      "idempotency_key_reused",
    );
    expect(await store.createPet(rex, AT, request)).toEqual({ ...first, replayed: true });
    expect(idsOf(await store.listPets({ limit: 9 }))).toEqual([first.id]);
  });

  test("requests differ by API key, by Idempotency-Key (case matters) and by operation", async (opened) => {
    const { store } = opened;
    const pets = [
      resultOf(await store.createPet(rex, AT, request)),
      resultOf(await store.createPet(rex, AT, { ...request, keyId: 2 })),
      resultOf(await store.createPet(rex, AT, { ...request, idempotencyKey: "5C1F" })),
    ];
    const order = resultOf(await store.placeOrder({ keyId: KEY_ID, petId: pets[0]?.id ?? 0n }, AT, request));
    expect([...pets, order].map(({ replayed }) => replayed)).toEqual([false, false, false, false]);
    expect(idsOf(await store.listPets({ limit: 9 }))).toEqual(pets.map(({ id }) => id));
  });

  test("after 24 hours the Idempotency-Key can be used again, for another 24 hours", async ({ store }) => {
    const first = resultOf(await store.createPet(rex, AT, request));
    const other = { ...request, fingerprint: "b".repeat(64) };
    const second = resultOf(await store.createPet(rex, AT + DAY_MS, other));
    expect(second).toMatchObject({ replayed: false });
    expect(second.id).toBeGreaterThan(first.id);
    expect(await store.createPet(rex, AT + DAY_MS + 1, other)).toEqual({ ...second, replayed: true });
  });

  test("a rejected request stores no result: its Idempotency-Key can be used later, with another body too", async (opened) => {
    const { store } = opened;
    const petId = await addPet(store);
    const { id } = resultOf(await store.placeOrder({ keyId: KEY_ID, petId }, AT));
    expect(rejectionCode(await store.placeOrder({ keyId: KEY_ID, petId }, AT, request))).toBe(
      "pet_not_available",
    );
    await store.updateOrder({ keyId: KEY_ID, id, status: "cancelled" }, AT);
    const other = { ...request, fingerprint: "b".repeat(64) };
    expect(resultOf(await store.placeOrder({ keyId: KEY_ID, petId }, AT, other)).replayed).toBe(false);
  });

  test("idempotency_conflict: of fifty concurrent requests with one key exactly one creates a pet", async (opened) => {
    const { store } = opened;
    const results = await Promise.all(Array.from({ length: 50 }, () => store.createPet(rex, AT, request)));
    const [id, ...others] = idsOf(await store.listPets({ limit: 9 }));
    expect(others).toEqual([]);
    const done = results.filter((result) => rejectionCode(result) === undefined).map(resultOf);
    expect(done.filter(({ replayed }) => !replayed)).toHaveLength(1);
    for (const result of done) expect(result.id).toBe(id ?? 0n);
    // A fast store may replay some of them; every other one is a conflict.
    const rejections = results.map(rejectionCode).filter((code) => code !== undefined);
    expect(new Set([...rejections, "idempotency_conflict"])).toEqual(new Set(["idempotency_conflict"]));
    expect(resultOf(await store.createPet(rex, AT, request)).replayed).toBe(true);
  });
}
