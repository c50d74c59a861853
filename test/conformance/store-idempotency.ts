import { expect } from "bun:test";
import {
  AT,
  DAY_MS,
  idsOf,
  KEY_ID,
  rejectionCode,
  request,
  resultOf,
  rex,
  type TestCase,
} from "./store-fixture.ts";

export function idempotencyCases(test: TestCase): void {
  test("a repeated request gets the first result to the byte, after changes and a restart too, and creates nothing", async (opened) => {
    const { clientStore, reopen } = opened;
    const pet = resultOf(await clientStore.createPet({ ...rex, name: 'R\u00e9x "𝒳"' }, AT, request));
    const order = resultOf(await clientStore.placeOrder({ keyId: KEY_ID, petId: pet.id }, AT, request));
    await clientStore.updateOrder({ keyId: KEY_ID, id: order.id, status: "completed" }, AT);
    const again = await reopen();
    expect((await again.operatorPetStore.getPet(pet.id))?.status).toBe("sold");
    for (const at of [AT, AT + DAY_MS - 1]) {
      expect(await again.clientStore.createPet(rex, at, request)).toEqual({ ...pet, replayed: true });
      const placed = await again.clientStore.placeOrder({ keyId: KEY_ID, petId: pet.id }, at, request);
      expect(placed).toEqual({ ...order, replayed: true });
    }
    expect(idsOf(await again.operatorPetStore.listPets({ limit: 9 }))).toEqual([pet.id]);
  });

  test("idempotency_conflict: of fifty concurrent requests with one key in two processes exactly one creates a pet", async (opened) => {
    const { clientStore, operatorPetStore, another } = opened;
    const { clientStore: other } = await another();
    const create = (i: number) => (i % 2 ? clientStore : other).createPet(rex, AT, request);
    const results = await Promise.all(Array.from({ length: 50 }, (_, i) => create(i)));
    const [id, ...others] = idsOf(await operatorPetStore.listPets({ limit: 9 }));
    expect(others).toEqual([]);
    const done = results.filter((result) => rejectionCode(result) === undefined).map(resultOf);
    expect(done.filter(({ replayed }) => !replayed)).toHaveLength(1);
    for (const result of done) expect(result.id).toBe(id ?? 0n);
    // A fast store may replay some of them; every other one is a conflict.
    const rejections = results.map(rejectionCode).filter((code) => code !== undefined);
    expect(new Set([...rejections, "idempotency_conflict"])).toEqual(new Set(["idempotency_conflict"]));
    expect(resultOf(await clientStore.createPet(rex, AT, request)).replayed).toBe(true);
  });
}
