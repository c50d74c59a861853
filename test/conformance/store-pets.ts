import { expect } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/api/json.ts";
import { encodePet, type NewPet } from "../../src/domain/pets-and-orders.ts";
import { withServiceValues } from "../pets.ts";
import { AT, addPet, idsOf, resultOf, rex, type TestCase } from "./store-fixture.ts";

/** Some look like SQL, like JSON, or like part of an array of PostgreSQL. */
const NAMES = [
  "x",
  "x".repeat(1024),
  "𝒳".repeat(1024),
  "Ζήνων Зенон ゼノン زينون",
  "e\u0301 👩‍👩‍👧‍👦 🏳️‍🌈",
  `"'\\ \`; DROP TABLE pets; --`,
  Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1)).join(""),
  "\x7f\x80\x9f\u00a0\u2028\u2029\ufeff\ufffd\uffff",
  '"\\/\\"\\u0041</script>\'',
  '{"id":1,"name":"a"},{"id":2,',
  ',{"id":',
  '","status":"sold"}',
  "  Rex  ",
  "NULL",
  "{NULL}",
  'a","b',
  "$1",
  "\\",
];
const CATEGORIES = [INT64_MIN, -(2n ** 53n) - 1n, -1n, 0n, 2n ** 53n + 1n, INT64_MAX];
const STATUSES = ["available", "pending", "sold"] as const;

/** The model has the rest. */
export function petCases(test: TestCase): void {
  test("createPet: identifiers start at 1 and ascend; every name, category and status is stored exactly", async (opened) => {
    const { clientStore, operatorPetStore, petJson } = opened;
    const { name, categoryId } = rex;
    const pets: NewPet[] = [
      ...NAMES.map((each) => ({ name: each, categoryId })),
      ...CATEGORIES.map((each) => ({ name, categoryId: each })),
      ...STATUSES.map((status) => ({ name, categoryId, status })),
    ];
    const batch = await Promise.all(pets.map((pet) => clientStore.createPet(pet, AT)));
    const alone = [];
    for (const pet of pets) alone.push(await clientStore.createPet(pet, AT));
    const results = [...batch, ...alone].map(resultOf);
    const { items: stored } = await operatorPetStore.listPets({ limit: 100 });
    const given = [...pets, ...pets].map((pet, i) => Object.assign({ id: BigInt(i + 1) }, pet));
    expect<object>(stored).toStrictEqual(given.map((pet, i) => withServiceValues(pet, stored[i] ?? {})));
    expect(results).toEqual(stored.map((pet) => ({ id: pet.id, body: encodePet(pet), replayed: false })));
    expect((await petJson.list({ limit: 100 })).json).toBe(`[${stored.map(encodePet).join(",")}]`);
    for (const pet of stored) {
      expect(await operatorPetStore.getPet(pet.id)).toStrictEqual(pet);
      expect((await petJson.get(Number(pet.id)))?.json).toBe(encodePet(pet));
    }
  });

  test("createPet: a thousand concurrent creations get a thousand identifiers, each with its own pet", async (opened) => {
    const { clientStore, operatorPetStore } = opened;
    const create = async (_: unknown, i: number) => {
      const pet = { name: `pet ${i}`, categoryId: BigInt(i) };
      return { id: resultOf(await clientStore.createPet(pet, AT)).id, ...pet };
    };
    const pets = await Promise.all(Array.from({ length: 1000 }, create));
    const byId = pets.toSorted((a, b) => Number(a.id - b.id));
    const { items } = await operatorPetStore.listPets({ limit: 1000 });
    expect<object>(items).toEqual(byId.map((pet, i) => withServiceValues(pet, items[i] ?? {})));
  });

  test("createPet: a write that the database rejects fails alone, and the others of its batch are committed, once", async (opened) => {
    const { clientStore, operatorPetStore } = opened;
    const names = Array.from({ length: 50 }, (_, i) => (i === 17 || i === 40 ? "" : `name ${i}`));
    const create = (name: string, i: number) =>
      clientStore.createPet({ ...rex, name }, AT, { keyId: 1, idempotencyKey: `${i}`, fingerprint: "f" });
    const outcomes = await Promise.allSettled(names.map(create));
    expect(outcomes.flatMap(({ status }, i) => (status === "rejected" ? [i] : []))).toEqual([17, 40]);
    expect(outcomes[17]).not.toMatchObject({ reason: { name: "Unavailable" } });
    const { items } = await operatorPetStore.listPets({ limit: 100 });
    expect(items.map(({ name }) => name)).toEqual(names.filter((name) => name !== ""));
  });

  test("searchPets: names with the text, in upper or lower case, among the next 1,000 pets with the filters", async (opened) => {
    const { clientStore, operatorPetStore } = opened;
    const nameOf = (i: number) => (i % 400 === 0 ? `Ärger 100%_${i}` : "Rex");
    const create = (i: number) => clientStore.createPet({ name: nameOf(i), categoryId: BigInt(i % 2) }, AT);
    for (let i = 1; i <= 1_500; i++) await (i % 100 === 0 ? create(i) : void create(i));
    const search = async (text: string, query: object) => {
      const { items, hasMore, readTo } = await operatorPetStore.searchPets(text, { limit: 5, ...query });
      return { ids: items.map(({ id }) => Number(id)), hasMore, readTo };
    };
    expect(await search("äRGER 100%_", {})).toEqual({ ids: [400, 800], hasMore: true, readTo: 1_000n });
    expect(await search("ärger", { after: 1_000n })).toEqual({
      ids: [1_200],
      hasMore: false,
      readTo: undefined,
    });
    expect(await search("ärger", { limit: 1 })).toEqual({ ids: [400], hasMore: true, readTo: undefined });
    expect(await search("_400", { categoryId: 0n })).toEqual({
      ids: [400],
      hasMore: false,
      readTo: undefined,
    });
    expect(await search("_400", { categoryId: 1n })).toEqual({ ids: [], hasMore: false, readTo: undefined });
    expect(await search("0%4", {})).toEqual({ ids: [], hasMore: true, readTo: 1_000n });
  });

  test("createPet: a pet is visible as soon as its write has resolved", async ({
    clientStore,
    operatorPetStore,
  }) => {
    const visible = Array.from({ length: 40 }, async () => {
      const id = await addPet(clientStore);
      const page = await operatorPetStore.listPets({ limit: 100 });
      return (await operatorPetStore.getPet(id))?.id === id && idsOf(page).includes(id);
    });
    expect(await Promise.all(visible)).toEqual(Array.from({ length: 40 }, () => true));
  });

  test("close finishes the writes already accepted, and rejects later ones", async ({
    clientStore,
    reopen,
  }) => {
    const writes = Array.from({ length: 100 }, () => clientStore.createPet(rex, AT));
    const again = await reopen();
    await expect(clientStore.createPet(rex, AT)).rejects.toMatchObject({ name: "Unavailable" });
    const ids = (await Promise.all(writes)).map((result) => resultOf(result).id);
    expect(idsOf(await again.operatorPetStore.listPets({ limit: 101 }))).toEqual(
      ids.toSorted((a, b) => Number(a - b)),
    );
    expect(await addPet(again.clientStore)).toBeGreaterThan(ids.at(-1) ?? 0n);
  });
}
