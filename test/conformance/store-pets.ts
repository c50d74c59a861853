import { expect } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/api/json.ts";
import { encodePet, type NewPet, type Pet } from "../../src/domain/resources.ts";
import { AT, addPet, resultOf, rex, type TestCase } from "./store-fixture.ts";

/** Also what looks like SQL, or like part of an array of PostgreSQL. */
const NAMES = [
  "x",
  "x".repeat(1024),
  "𝒳".repeat(1024),
  "Ζήνων Зенон ゼノン زينون",
  "e\u0301 👩‍👩‍👧‍👦 🏳️‍🌈",
  `"'\\ \`; DROP TABLE pets; --`,
  "a\u0001\t\n\r\u001f\u007fb",
  "a\u2028b\u2029c\ufeffd",
  "  Rex  ",
  "NULL",
  "{NULL}",
  'a","b',
  "$1",
  "\\",
];
const CATEGORIES = [INT64_MIN, -(2n ** 53n) - 1n, -1n, 0n, 2n ** 53n + 1n, INT64_MAX];
const STATUSES = ["available", "pending", "sold"] as const;

export function petCases(test: TestCase): void {
  test("createPet: identifiers start at 1 and ascend; every name, category and status is stored exactly", async (opened) => {
    const { store } = opened;
    const { name, categoryId } = rex;
    const pets: NewPet[] = [
      ...NAMES.map((each) => ({ name: each, categoryId })),
      ...CATEGORIES.map((each) => ({ name, categoryId: each })),
      ...STATUSES.map((status) => ({ name, categoryId, status })),
    ];
    const batch = await Promise.all(pets.map((pet) => store.createPet(pet, AT)));
    const alone = [];
    for (const pet of pets) alone.push(await store.createPet(pet, AT));
    const results = [...batch, ...alone].map(resultOf);
    const stored = [...pets, ...pets].map((pet, i): Pet => Object.assign({ id: BigInt(i + 1) }, pet));
    expect(results).toEqual(stored.map((pet) => ({ id: pet.id, body: encodePet(pet), replayed: false })));
    expect((await store.listPets({ limit: 100 })).items).toStrictEqual(stored);
    for (const pet of stored) expect(await store.getPet(pet.id)).toStrictEqual(pet);
  });

  test("createPet: a thousand concurrent creations get a thousand identifiers, each with its own pet", async (opened) => {
    const { store } = opened;
    const results = await Promise.all(
      Array.from({ length: 1000 }, (_, i) =>
        store.createPet({ name: `pet ${i}`, categoryId: BigInt(i) }, AT),
      ),
    );
    const pets = results.map((result, i) => ({
      id: resultOf(result).id,
      name: `pet ${i}`,
      categoryId: BigInt(i),
    }));
    const byId = pets.toSorted((a, b) => Number(a.id - b.id));
    expect((await store.listPets({ limit: 1000 })).items).toEqual(byId);
  });

  test("getPet: undefined for identifiers that no pet has, including the limits of int64", async (opened) => {
    const { store } = opened;
    const id = await addPet(store);
    for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
      expect(await store.getPet(other)).toBeUndefined();
    }
  });
}
