import { expect, test } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/contract/json.ts";
import { encodePet, type NewPet } from "../../src/contract/resources.ts";
import { AT, addPet, rex, type WithStore, resultOf } from "./store-fixture.ts";

const NAMES = {
  "one character": "x",
  "1,024 characters": "x".repeat(1024),
  "1,024 characters outside the basic multilingual plane": "𝒳".repeat(1024),
  "several scripts": "Ζήνων Зенон ゼノン زينون",
  "combined characters": "e\u0301 👩‍👩‍👧‍👦 🏳️‍🌈",
  "quotes and backslashes": `"'\\ \`; DROP TABLE pets; --`,
  "control characters": "a\u0001\t\n\r\u001f\u007fb",
  "Unicode line separators": "a\u2028b\u2029c\ufeffd",
  "leading and trailing spaces": "  Rex  ",
};

export function petCases(withStore: WithStore): void {
  test(
    "createPet: the first identifier is 1, and each next one is greater",
    withStore(async (store) => {
      const ids = [await addPet(store), await addPet(store), await addPet(store)];
      expect(ids[0]).toBe(1n);
      expect(ids).toEqual(ids.toSorted((a, b) => Number(a - b)));
      expect(new Set(ids).size).toBe(3);
    }),
  );

  test(
    "createPet: the body is the pet as JSON, and the result is not replayed",
    withStore(async (store) => {
      const { id, body, replayed } = resultOf(await store.createPet(rex, AT));
      expect(body).toBe(encodePet({ id, ...rex }));
      expect(replayed).toBe(false);
    }),
  );

  for (const categoryId of [INT64_MIN, -(2n ** 53n) - 1n, -1n, 0n, 2n ** 53n + 1n, INT64_MAX]) {
    test(
      `createPet: categoryId ${categoryId} is stored exactly`,
      withStore(async (store) => {
        const { id, body } = resultOf(await store.createPet({ ...rex, categoryId }, AT));
        expect(body).toContain(`"categoryId":${categoryId},`);
        expect((await store.getPet(id))?.categoryId).toBe(categoryId);
        expect((await store.listPets({ limit: 1 })).items[0]?.categoryId).toBe(categoryId);
      }),
    );
  }

  for (const [kind, name] of Object.entries(NAMES)) {
    test(
      `createPet: a name of ${kind} is stored exactly`,
      withStore(async (store) => {
        const { id, body } = resultOf(await store.createPet({ ...rex, name }, AT));
        expect(JSON.parse(body).name).toBe(name);
        expect((await store.getPet(id))?.name).toBe(name);
        expect((await store.listPets({ limit: 1 })).items[0]?.name).toBe(name);
      }),
    );
  }

  test(
    "createPet: a missing status is absent everywhere, neither null nor undefined",
    withStore(async (store) => {
      const plain: NewPet = { name: "Rex", categoryId: 7n };
      const { id, body } = resultOf(await store.createPet(plain, AT));
      expect(body).toBe(`{"id":${id},"name":"Rex","categoryId":7}`);
      expect(await store.getPet(id)).toStrictEqual({ id, ...plain });
      expect((await store.listPets({ limit: 1 })).items).toStrictEqual([{ id, ...plain }]);
    }),
  );

  for (const status of ["available", "pending", "sold"] as const) {
    test(
      `createPet: status ${status} is stored`,
      withStore(async (store) => {
        const id = await addPet(store, { status });
        expect(await store.getPet(id)).toStrictEqual({ id, name: "Rex", categoryId: 7n, status });
      }),
    );
  }

  test(
    "createPet: a thousand concurrent creations get a thousand identifiers, each with its own pet",
    withStore(async (store) => {
      const results = await Promise.all(
        Array.from({ length: 1000 }, (_, i) =>
          store.createPet({ name: `pet ${i}`, categoryId: BigInt(i) }, AT),
        ),
      );
      const ids = results.map((result) => resultOf(result).id);
      expect(new Set(ids).size).toBe(1000);
      for (const [i, id] of ids.entries()) {
        expect(await store.getPet(id)).toEqual({ id, name: `pet ${i}`, categoryId: BigInt(i) });
      }
    }),
  );

  test(
    "getPet: undefined for identifiers that no pet has, including the limits of int64",
    withStore(async (store) => {
      const id = await addPet(store);
      for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
        expect(await store.getPet(other)).toBeUndefined();
      }
    }),
  );
}
