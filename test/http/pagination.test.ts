import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { type ApiResponse, useService } from "../service.ts";

const STATUSES = ["available", "pending", "sold", undefined] as const;
const IDS = Array.from({ length: 130 }, (_, i) => i + 1);
const service = await useService();
const { post } = service;
for (const id of IDS)
  await post("/pets", { name: `Pet ${id}`, categoryId: id % 3, status: STATUSES[id % 4] });

const idsOf = ({ json }: ApiResponse) => (json as { id: number }[]).map(({ id }) => id);
const nextOf = ({ headers }: ApiResponse) => /<([^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
const get = (path: string, headers: Record<string, string> = {}) => service.call({ path, headers });

const INT64 = ["-9223372036854775808", "9223372036854775807"];
const someQuery = fc.record(
  {
    limit: fc.constantFrom(3, 7, 65, 100),
    status: fc.constantFrom("available", "pending", "sold"),
    categoryId: fc.constantFrom("0", "1", "2", ...INT64),
    id: fc.array(fc.integer({ min: 1, max: 131 }), { minLength: 1, maxLength: 100 }),
  },
  { requiredKeys: [] },
);

test("listPets 200: the pages of any query have each pet that it selects once, 20 by default; links keep the query", async () => {
  const agrees = fc.asyncProperty(someQuery, async (query) => {
    const { limit = 20, status, categoryId, id: some } = query;
    const matching = IDS.filter(
      (id) =>
        (status === undefined || STATUSES[id % 4] === status) &&
        (categoryId === undefined || `${id % 3}` === categoryId) &&
        (some === undefined || some.includes(id)),
    );
    const sorted = some && [...new Set(some)].toSorted((a, b) => a - b);
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) given.set(name, String(value));
    const kept = { ...Object.fromEntries(given), ...(sorted && { id: sorted.join() }) };
    let path = `/pets?${given}`;
    for (let from = 0; ; from += limit) {
      const response: ApiResponse = await get(path);
      expect(idsOf(response)).toEqual(matching.slice(from, from + limit));
      const next = nextOf(response);
      expect(next !== undefined).toBe(matching.length > from + limit);
      if (next === undefined) break;
      const { cursor: _, ...rest } = Object.fromEntries(new URL(next).searchParams);
      expect(rest).toEqual(kept);
      path = next.slice(service.url.length);
    }
  });
  await fc.assert(agrees, { numRuns: 60 });
});

test("listPets 200: a parameter may be escaped, and `id` repeated", async () => {
  expect(idsOf(await get("/pets?%6Cimit=%33"))).toHaveLength(3);
  expect(idsOf(await get("/pets?id=9,5&limit=100&id=1"))).toEqual([1, 5, 9]);
});

const INVALID = [
  "limit=101 limit=05 limit=%2B5 limit= limit limit=1.0 limit=5&limit=5",
  "categoryId= categoryId=07 categoryId=%2B7 categoryId=-0 categoryId=7.0 categoryId=1,2 categoryId=9223372036854775808",
  "categoryId=7&categoryId=7 categoryId=7&categoryId=",
  "status=Sold status= status=sold&status=sold status=%FF",
  "cursor= cursor=0 cursor=zzzzzzzzzzzzzzzzzzzz cursor=1&cursor=1",
  `id= id=,7 id=07 id=7.0 id=7&id= id=9223372036854775808 id=${"1,".repeat(100)}1`,
];

test.each(INVALID.flatMap((queries) => queries.split(" ")))("listPets 400: ?%s", async (query) => {
  const message = expect.stringContaining(query.split("=")[0] ?? "");
  expect((await get(`/pets?${query}`)).json).toMatchObject({ code: "invalid_parameter", message });
});

test("listPets 200: unknown parameters are ignored, those named like built-ins too", async () => {
  expect((await get("/pets?foo=1&foo=2&__proto__=3&constructor=4&limit=2")).status).toBe(200);
});

test.each(["/pets?id=ID", "/pets/ID"])(
  "%s: its ETag, also from the cache, follows the pet",
  async (pattern) => {
    const id = await service.newPet();
    const path = pattern.replace("ID", String(id));
    const headers = { "If-None-Match": (await get(path)).headers.get("etag") ?? "" };
    for (let i = 0; i < 3; i++) expect((await get(path, headers)).status).toBe(304);
    await post("/store/orders", { petId: id });
    const changed = await get(path, headers);
    expect([changed.status, changed.text]).toEqual([200, expect.stringContaining('"status":"pending"')]);
  },
);

test("listPets 200: the ETag changes when a next page appears", async () => {
  const last = await get("/pets?limit=1&id=1,999");
  expect(nextOf(last)).toBeUndefined();
  const first = await get("/pets?limit=1&id=1,2");
  expect([first.text, nextOf(first)]).toEqual([last.text, expect.any(String)]);
  expect(first.headers.get("etag")).not.toBe(last.headers.get("etag"));
});
