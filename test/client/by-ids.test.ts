import { expect, test } from "bun:test";
import { Petstore, PetstoreError } from "../../src/client/index.ts";
import { rejection } from "./scripted.ts";

/** Has the pets with even identifiers. Without support for `id` it ignores the parameter, as unknown ones are. */
function catalogue(supportsId: boolean) {
  const queries: string[] = [];
  const petstore = new Petstore({
    key: "pet_live_x",
    baseUrl: "http://petstore.test/v1",
    fetch: async (url) => {
      const { searchParams } = new URL(url);
      queries.push(`${searchParams.get("id")} ${searchParams.get("limit")}`);
      const ids = supportsId ? (searchParams.get("id") ?? "").split(",") : ["998", "1000"];
      const found = ids.filter((id) => BigInt(id) % 2n === 0n);
      return new Response(`[${found.map((id) => `{"id":${id},"name":"Rex","categoryId":1}`).join()}]`);
    },
  });
  return { petstore, queries };
}

test("byIds returns the pets that exist, in ascending order, each once, with 100 identifiers in a request", async () => {
  const { petstore, queries } = catalogue(true);
  expect(await petstore.pets.byIds([])).toEqual([]);
  const pets = await petstore.pets.byIds([9223372036854775806n, 4, 4n, 3, 2]);
  expect(pets.map(({ id }) => id)).toEqual([2n, 4n, 9223372036854775806n]);
  expect(queries.splice(0)).toEqual(["2,3,4,9223372036854775806 100"]);
  expect(await petstore.pets.byIds(Array.from({ length: 201 }, (_, i) => i))).toHaveLength(101);
  expect(queries.map((query) => query.split(",").length)).toEqual([100, 100, 1]);
  expect(await petstore.pets.byIds([2]).withResponse()).toMatchObject({
    data: [{ id: 2n }],
    response: { status: 200 },
  });
  expect(await petstore.pets.byIds([]).withResponse()).toEqual({ data: [], response: undefined });
});

test("byIds rejects on a server that ignores the parameter", async () => {
  const { petstore } = catalogue(false);
  expect(await rejection(petstore.pets.byIds([2]))).toBeInstanceOf(PetstoreError);
});
