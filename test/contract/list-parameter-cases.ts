import { beforeAll, describe, expect, test } from "bun:test";
import { Petstore } from "../../src/client/index.ts";
import { ORDER_FILTERS, PET_FILTERS } from "../../src/domain/pets-and-orders.ts";
import { OPERATIONS, type PetstoreInput } from "../../src/petstore/operations.ts";
import type { QueryOf } from "../../src/operator/operations.ts";
import type { AdminService } from "../admin/admin-service.ts";
import { filterSets, ORDER_FILTER_VALUES, PET_FILTER_VALUES } from "../conformance/store-fixture.ts";

type ListOperation = "listPets" | "listOrders";
type ValuesOf<Query> = { readonly [Name in Exclude<keyof Query, "cursor">]-?: string | bigint };

/** A value of each parameter of a list with which it has some of the items, and a next page. */
const OF_CLIENTS: { readonly [Id in ListOperation]: ValuesOf<PetstoreInput<Id>["query"]> } = {
  listPets: { limit: "2", ...PET_FILTER_VALUES, id: "61,62,63" },
  listOrders: { limit: "2", ...ORDER_FILTER_VALUES },
};
const OF_OPERATORS: { readonly [Id in ListOperation]: ValuesOf<QueryOf<Id>> } = {
  listPets: { limit: "2", ...PET_FILTER_VALUES, search: "8" },
  listOrders: { limit: "2", ...ORDER_FILTER_VALUES, keyId: "2", petId: "3" },
};

function casesOf(values: Readonly<Record<ListOperation, object>>) {
  return (["listPets", "listOrders"] as const).flatMap((id) =>
    Object.entries(values[id]).map(([name, value]) => [id, name, String(value)] as const),
  );
}

/** No parameter of a list is accepted and then ignored. */
export function listParameterCases(service: AdminService): void {
  beforeAll(async () => {
    for (let id = 1; id <= 90; id++) {
      const status = id % 5 === 0 && { status: "sold" };
      await service.post("/pets", { name: `pet ${id}`, categoryId: 6 + (id % 3), ...status });
    }
    const { secret: key } = await service.newKey();
    for (const petId of [1, 2, 3, 4, 6, 7]) await service.post("/store/orders", { petId });
    for (const petId of [8, 9]) await service.post("/store/orders", { petId }, { key });
    for (const id of [1, 2, 3, 4])
      await service.ok(`PATCH /api/orders/${id}`, { body: { status: "completed" } });
  });

  test.each(casesOf(OF_CLIENTS))(
    "clients: %s?%s=%s has an effect, which the next page keeps",
    async (id, name, value) => {
      const { path } = OPERATIONS[id];
      const pageOf = async (query: string) =>
        itemsOf((await service.call({ path: `${path}?${query}` })).json);
      const all = await pageOf("limit=100");
      const whole = name === "limit" ? all : await pageOf(`${name}=${value}&limit=100`);
      if (name !== "limit") expect(whole.length).toBeLessThan(all.length);
      const first = await service.call({
        path: `${path}?${name}=${value}${name === "limit" ? "" : "&limit=1"}`,
      });
      expect(itemsOf(first.json)).toEqual(whole.slice(0, name === "limit" ? 2 : 1));
      const next = /<([^>]+)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
      expect(new URL(next).searchParams.get(name)).toBe(value);
      const second = await service.call({ path: next.slice(service.url.length) });
      expect(itemsOf(second.json)).toEqual(whole.slice(name === "limit" ? 2 : 1, name === "limit" ? 4 : 2));
    },
  );

  test.each(casesOf(OF_OPERATORS))("operators: %s?%s=%s has an effect", async (id, name, value) => {
    const path = id === "listPets" ? "/api/pets" : "/api/orders";
    const { items: all } = await service.ok(`${path}?limit=100`);
    const limit = name === "limit" ? "" : "&limit=100";
    const { items } = await service.ok(`${path}?${name}=${value}${limit}`);
    expect(itemsOf(items).length).toBeGreaterThan(0);
    expect(itemsOf(items).length).toBeLessThan(itemsOf(all).length);
  });

  describe.each(filterSets(PET_FILTER_VALUES))("pets filtered by %s", (_, filters) => {
    const query = Object.entries(filters)
      .map(([name, value]) => `&${name}=${value}`)
      .join("");
    const isMatch = (pet: unknown) =>
      Object.entries(filters).every(([name, value]) => `${valueOf(pet, name)}` === `${value}`);
    let matching: readonly unknown[];

    beforeAll(async () => {
      matching = itemsOf((await service.call({ path: "/pets?limit=100" })).json).filter(isMatch);
      expect(matching.length).toBeGreaterThan(2);
    });

    test("are the same for clients, for operators and in the client library", async () => {
      expect((await service.call({ path: `/pets?limit=100${query}` })).json).toEqual(matching);
      expect((await service.ok(`/api/pets?limit=100${query}`))["items"]).toEqual(matching);
      const petstore = new Petstore({ key: service.key, baseUrl: service.url });
      const pets = await petstore.pets.list({ limit: 20, ...filters }).toArray({ max: 100 });
      expect(pets.map(({ id }) => Number(id))).toEqual(matching.map((pet) => Number(valueOf(pet, "id"))));
    });

    test("are selected by identifiers and by a search, too", async () => {
      const ids = [1, 2, 3, 4, 5, 10, 11, 12];
      const { json } = await service.call({ path: `/pets?limit=100&id=${ids.join()}${query}` });
      expect(json).toEqual(matching.filter((pet) => ids.includes(Number(valueOf(pet, "id")))));
      expect((await service.ok(`/api/pets?limit=100&search=pet${query}`))["items"]).toEqual(matching);
    });
  });

  test("the first filter of the table is the first of the values", () => {
    expect(Object.keys(PET_FILTER_VALUES)).toEqual(Object.keys(PET_FILTERS));
    expect(Object.keys(ORDER_FILTER_VALUES)).toEqual(Object.keys(ORDER_FILTERS));
  });
}

function valueOf(item: unknown, name: string): unknown {
  return Reflect.get(Object(item), name);
}

function itemsOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`not an array: ${String(value)}`);
  return value;
}
