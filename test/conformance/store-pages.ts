import { expect } from "bun:test";
import { INT64_MIN } from "../../src/api/json.ts";
import { encodePet, type PetStatus } from "../../src/domain/resources.ts";
import type { Store } from "../../src/domain/ports.ts";
import { BY } from "../key-store-arguments.ts";
import { AT, KEY_ID, addPet, idsOf, resultOf, rex, type TestCase } from "./store-fixture.ts";

/** Adds pets one after the other, in a defined order. */
async function addPets(store: Store, statuses: readonly (PetStatus | undefined)[]): Promise<bigint[]> {
  const ids: bigint[] = [];
  for (const status of statuses) {
    ids.push(
      resultOf(await store.createPet({ name: "Rex", categoryId: 7n, ...(status && { status }) }, AT)).id,
    );
  }
  return ids;
}

export function pageCases(test: TestCase): void {
  test("the JSON of a pet is the same from every store, whatever its name has", async ({
    store,
    petJson,
  }) => {
    const controls = Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1)).join("");
    const names = [
      controls,
      "\x7f\x80\x9f\u00a0\u2028\u2029\ufeff\ufffd\uffff",
      '"\\/\\"\\u0041</script>\'',
      "Ἄργος 犬 🐕",
      '{"id":1,"name":"a"},{"id":2,',
      ',{"id":',
      '","status":"sold"}',
      "x".repeat(1_024),
    ];
    for (const name of names) {
      const pet = { ...rex, name, categoryId: INT64_MIN };
      const id = resultOf(await store.createPet(pet, AT)).id;
      const json = encodePet({ ...pet, id });
      expect((await petJson.get(Number(id)))?.json).toBe(json);
      expect(await petJson.list({ after: id - 1n, limit: 1 })).toMatchObject({ json: `[${json}]`, last: id });
    }
    const { json } = await petJson.list({ limit: 100 });
    expect(JSON.parse(json).map(({ name }: { name: string }) => name)).toEqual(names);
    const first = await petJson.list({ limit: names.length - 1 });
    expect(first).toMatchObject({ last: BigInt(names.length - 1), hasMore: true });
  });

  test("listPets: `ids` shows an order, a correction, a deletion and a new pet at once", async (opened) => {
    const { store, corrections, petJson } = opened;
    const [one = 0n, two = 0n] = await addPets(store, ["available", undefined]);
    const query = { ids: [one, two, two + 1n], limit: 20 };
    const json = async () => (await petJson.list(query)).json;
    const before = `[{"id":${one},"name":"Rex","categoryId":7,"status":"available"},{"id":${two},"name":"Rex","categoryId":7}]`;
    expect(await json()).toBe(before);
    expect(await json()).toBe(before);
    resultOf(await store.placeOrder({ keyId: KEY_ID, petId: one }, AT));
    expect(await json()).toBe(before.replace("available", "pending"));
    await corrections.deletePet(two, BY);
    expect(await json()).toBe(`[{"id":${one},"name":"Rex","categoryId":7,"status":"pending"}]`);
    const [three = 0n] = await addPets(store, ["sold"]);
    expect(three).toBe(two + 1n);
    expect(await json()).toEndWith(`,{"id":${three},"name":"Rex","categoryId":7,"status":"sold"}]`);
  });

  test("listPets: reading all pages while pets are added returns each pet once", async ({ store }) => {
    const ids = await addPets(
      store,
      Array.from({ length: 23 }, () => "available"),
    );
    for (const filter of [{}, { status: "available" }] as const) {
      const seen: bigint[] = [];
      for (let pages = 0, hasMore = true; hasMore; pages++) {
        const page = await store.listPets({ ...filter, limit: 3, after: seen.at(-1) ?? 0n });
        seen.push(...idsOf(page));
        ({ hasMore } = page);
        if (pages < 5) ids.push(await addPet(store));
      }
      expect(seen).toEqual(ids);
    }
  });

  test("listPets: a pet is visible as soon as its write has resolved", async ({ store }) => {
    const visible = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const id = await addPet(store);
        return (
          (await store.getPet(id))?.id === id && idsOf(await store.listPets({ limit: 100 })).includes(id)
        );
      }),
    );
    expect(visible).toEqual(Array.from({ length: 40 }, () => true));
  });
}
