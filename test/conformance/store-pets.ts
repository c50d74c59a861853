import { expect, test } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/contract/json.ts";
import { encodePet, type NewPet } from "../../src/contract/resources.ts";
import { AT, addPet, rex, type WithStore, written } from "./store-fixture.ts";

const NAMES = {
  "one character": "x",
  "the longest": "x".repeat(1024),
  "the longest, outside the basic plane": "𝒳".repeat(1024),
  "several scripts": "Ζήνων Зенон ゼノン زينون",
  "combined characters": "e\u0301 👩‍👩‍👧‍👦 🏳️‍🌈",
  "quotes and backslashes": `"'\\ \`; DROP TABLE pets; --`,
  "control characters": "a\u0001\t\n\r\u001f\u007fb",
  "separators that JavaScript once minded": "a\u2028b\u2029c\ufeffd",
  "white space around it": "  Rex  ",
};

export function petCases(withStore: WithStore): void {
  test(
    "createPet: the first pet is 1, and each one after it is greater",
    withStore(async (store) => {
      const ids = [await addPet(store), await addPet(store), await addPet(store)];
      expect(ids[0]).toBe(1n);
      expect(ids).toEqual(ids.toSorted((a, b) => Number(a - b)));
      expect(new Set(ids).size).toBe(3);
    }),
  );

  test(
    "createPet: the answer is the pet as JSON, and not a replay",
    withStore(async (store) => {
      const { id, body, replayed } = written(await store.createPet(rex, AT));
      expect(body).toBe(encodePet({ id, ...rex }));
      expect(replayed).toBe(false);
    }),
  );

  for (const categoryId of [INT64_MIN, -(2n ** 53n) - 1n, -1n, 0n, 2n ** 53n + 1n, INT64_MAX]) {
    test(
      `createPet: categoryId ${categoryId} comes back as itself`,
      withStore(async (store) => {
        const { id, body } = written(await store.createPet({ ...rex, categoryId }, AT));
        expect(body).toContain(`"categoryId":${categoryId},`);
        expect((await store.getPet(id))?.categoryId).toBe(categoryId);
        expect((await store.listPets({ limit: 1 })).items[0]?.categoryId).toBe(categoryId);
      }),
    );
  }

  for (const [kind, name] of Object.entries(NAMES)) {
    test(
      `createPet: a name of ${kind} comes back as itself`,
      withStore(async (store) => {
        const { id, body } = written(await store.createPet({ ...rex, name }, AT));
        expect(JSON.parse(body).name).toBe(name);
        expect((await store.getPet(id))?.name).toBe(name);
        expect((await store.listPets({ limit: 1 })).items[0]?.name).toBe(name);
      }),
    );
  }

  test(
    "createPet: a status that was not given is absent everywhere, neither null nor undefined",
    withStore(async (store) => {
      const plain: NewPet = { name: "Rex", categoryId: 7n };
      const { id, body } = written(await store.createPet(plain, AT));
      expect(body).toBe(`{"id":${id},"name":"Rex","categoryId":7}`);
      expect(await store.getPet(id)).toStrictEqual({ id, ...plain });
      expect((await store.listPets({ limit: 1 })).items).toStrictEqual([{ id, ...plain }]);
    }),
  );

  for (const status of ["available", "pending", "sold"] as const) {
    test(
      `createPet: status ${status} is kept`,
      withStore(async (store) => {
        const id = await addPet(store, { status });
        expect(await store.getPet(id)).toStrictEqual({ id, name: "Rex", categoryId: 7n, status });
      }),
    );
  }

  test(
    "createPet: a thousand at once get a thousand identifiers, and each its own pet",
    withStore(async (store) => {
      const answers = await Promise.all(
        Array.from({ length: 1000 }, (_, i) =>
          store.createPet({ name: `pet ${i}`, categoryId: BigInt(i) }, AT),
        ),
      );
      const ids = answers.map((answer) => written(answer).id);
      expect(new Set(ids).size).toBe(1000);
      for (const [i, id] of ids.entries()) {
        expect(await store.getPet(id)).toEqual({ id, name: `pet ${i}`, categoryId: BigInt(i) });
      }
    }),
  );

  test(
    "getPet: an identifier that was never given is undefined, at the ends of int64 too",
    withStore(async (store) => {
      const id = await addPet(store);
      for (const other of [id + 1n, 0n, -1n, INT64_MIN, INT64_MAX]) {
        expect(await store.getPet(other)).toBeUndefined();
      }
    }),
  );
}
