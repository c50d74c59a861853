import { expect, test } from "bun:test";
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

/** The identifiers on all pages. */
async function walk(path: string): Promise<number[]> {
  const seen: number[] = [];
  for (let url: string | undefined = service.url + path; url;) {
    const response: ApiResponse = await get(url.slice(service.url.length));
    seen.push(...idsOf(response));
    url = nextOf(response);
  }
  return seen;
}

test("listPets 200: 20 pets by default, and as many as the limit", async () => {
  expect(idsOf(await get("/pets"))).toEqual(IDS.slice(0, 20));
  for (const limit of [1, 100]) expect(idsOf(await get(`/pets?limit=${limit}`))).toEqual(IDS.slice(0, limit));
  expect(idsOf(await get("/pets?%6Cimit=%33"))).toHaveLength(3);
});

test("listPets 200: the pages have every pet once, with a status those that have it; the last has no next link", async () => {
  expect(await walk("/pets?limit=65")).toEqual(IDS);
  for (const status of ["available", "pending", "sold"])
    expect(await walk(`/pets?status=${status}&limit=7`)).toEqual(
      IDS.filter((id) => STATUSES[id % 4] === status),
    );
});

test("listPets 200: the pages of a category have every pet of it once, also with a status and with ids", async () => {
  const inCategory = IDS.filter((id) => id % 3 === 2);
  expect(await walk("/pets?categoryId=2&limit=7")).toEqual(inCategory);
  const sold = inCategory.filter((id) => STATUSES[id % 4] === "sold");
  expect(await walk("/pets?status=sold&categoryId=2&limit=4")).toEqual(sold);
  const ids = IDS.slice(0, 50);
  expect(await walk(`/pets?categoryId=2&limit=4&id=${ids.join(",")}`)).toEqual(
    ids.filter((id) => inCategory.includes(id)),
  );
  const both = await get("/pets?id=2,5,6,14,26&limit=1&status=sold&categoryId=2");
  expect(idsOf(both)).toEqual([2]);
  expect(nextOf(both)).toMatch(/\/pets\?limit=1&categoryId=2&status=sold&id=2,5,6,14,26&cursor=\w+$/);
  for (const category of ["-9223372036854775808", "9223372036854775807", "-2"])
    expect(idsOf(await get(`/pets?categoryId=${category}`))).toEqual([]);
});

test("listPets 200: `id` selects pets, and the next link keeps the ids, the limit and the status", async () => {
  const response = await get("/pets?id=8,4,1,131,4&limit=1&status=available");
  expect(idsOf(response)).toEqual([4]);
  expect(nextOf(response)).toMatch(/\/pets\?limit=1&status=available&id=1,4,8,131&cursor=\w+$/);
  expect(await walk("/pets?id=9,5,1,131,5&limit=2")).toEqual([1, 5, 9]);
  expect(idsOf(await get("/pets?id=9,5&limit=100&id=1"))).toEqual([1, 5, 9]);
  const hundred = IDS.slice(30);
  expect(idsOf(await get(`/pets?limit=100&id=${hundred.join(",")}`))).toEqual(hundred);
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
