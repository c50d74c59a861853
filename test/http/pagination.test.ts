import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ApiResponse, type Service, startService } from "../service.ts";

let service: Service;
const STATUSES = ["available", "pending", "sold", undefined] as const;

beforeAll(async () => {
  service = await startService();
  const creates = Array.from({ length: 130 }, (_, i) => {
    const status = STATUSES[i % 4];
    return { name: `Pet ${i}`, categoryId: i, ...(status && { status }) };
  });
  for (const body of creates) await service.call({ method: "POST", path: "/pets", body });
});
afterAll(() => service.stop());

interface Pet {
  id: number;
  status?: string;
}
const pets = ({ json }: ApiResponse) => json as Pet[];
const nextOf = ({ headers }: ApiResponse) => /<([^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
const get = (path: string, headers: Record<string, string> = {}) => service.call({ path, headers });

async function walk(path: string): Promise<Pet[]> {
  const seen: Pet[] = [];
  for (let url: string | undefined = service.url + path; url;) {
    const response: ApiResponse = await get(url.slice(service.url.length));
    seen.push(...pets(response));
    url = nextOf(response);
  }
  return seen;
}

describe("listPets", () => {
  test("listPets 200: 20 pets by default, in ascending order of their identifiers", async () => {
    const response = await get("/pets");
    expect(pets(response).map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(nextOf(response)).toStartWith(`${service.url}/pets?cursor=`);
  });

  for (const [limit, count] of [
    ["1", 1],
    ["100", 100],
    ["37", 37],
  ] as const) {
    test(`listPets 200: limit=${limit}`, async () => {
      expect(pets(await get(`/pets?limit=${limit}`))).toHaveLength(count);
    });
  }

  test("listPets 200: `id` selects pets, and the next link keeps the ids, the limit and the status", async () => {
    const response = await get("/pets?id=9,5,1,131,5&limit=2&status=available");
    expect(pets(response).map(({ id }) => id)).toEqual([1, 5]);
    expect(nextOf(response)).toMatch(/\/pets\?limit=2&status=available&id=1,5,9,131&cursor=\w+$/);
    expect(pets(await get("/pets?id=131"))).toEqual([]);
    expect((await walk("/pets?id=9,5,1,131,5&limit=2")).map(({ id }) => id)).toEqual([1, 5, 9]);
    const hundred = Array.from({ length: 100 }, (_, i) => i + 31);
    expect(pets(await get(`/pets?limit=100&id=${hundred.join(",")}`)).map(({ id }) => id)).toEqual(hundred);
  });

  for (const id of [
    "",
    "7,",
    ",7",
    "07",
    "%2B7",
    "7.0",
    "abc",
    "7&id=8",
    "9223372036854775808",
    "1,".repeat(100) + "1",
  ]) {
    test(`listPets 400: id=${id.slice(0, 24)}`, async () => {
      const { status, text } = await get(`/pets?id=${id}`);
      expect(status).toBe(400);
      expect(text).toMatch(
        /"id must be (given only once|1 to 100 decimal integers from -2\^63 to 2\^63 - 1, separated by commas)\./,
      );
    });
  }

  for (const status of ["available", "pending", "sold"]) {
    test(`listPets 200: the pages with status=${status} have each of those pets once`, async () => {
      const seen = await walk(`/pets?status=${status}&limit=7`);
      expect(seen.every((pet) => pet.status === status)).toBe(true);
      expect(seen.map(({ id }) => id)).toEqual(
        Array.from({ length: 130 }, (_, i) => i + 1).filter((id) => STATUSES[(id - 1) % 4] === status),
      );
    });
  }

  test("listPets 200: the pages have every pet once", async () => {
    expect((await walk("/pets?limit=9")).map(({ id }) => id)).toEqual(
      Array.from({ length: 130 }, (_, i) => i + 1),
    );
  });

  test("listPets 200: a page that ends with the last pet has no next link", async () => {
    expect(nextOf(await get("/pets?limit=65"))).toBeDefined();
    const second = await get((nextOf(await get("/pets?limit=65")) ?? "").slice(service.url.length));
    expect(pets(second)).toHaveLength(65);
    expect(nextOf(second)).toBeUndefined();
  });

  for (const query of [
    "limit=0",
    "limit=101",
    "limit=05",
    "limit=%2B5",
    "limit=",
    "limit",
    "limit=-1",
    "limit=1.0",
    "limit=1e1",
    "limit=abc",
    "limit=99999999999",
    "limit=5&limit=5",
    "status=Sold",
    "status=",
    "status=sold&status=sold",
    "status=all",
    "status=%FF",
    "cursor=",
    "cursor=abc",
    "cursor=0",
    "cursor=zzzzzzzzzzzzzzzzzzzz",
    "cursor=1&cursor=1",
  ]) {
    test(`listPets 400: ?${query}`, async () => {
      const response = await get(`/pets?${query}`);
      expect(response.status).toBe(400);
      expect(response.json).toMatchObject({
        code: "invalid_parameter",
        message: expect.stringContaining(query.split("=")[0] ?? ""),
      });
    });
  }

  test("listPets 400: every invalid parameter is reported", async () => {
    const { json } = await get("/pets?limit=0&status=none&cursor=x");
    expect(json).toMatchObject({
      message:
        'limit must be an integer from 1 to 100; status must be one of "available", "pending" or "sold"; ' +
        'cursor must be a cursor from the rel="next" link of this list.',
    });
  });

  test("listOrders 400: a cursor of the list of pets", async () => {
    const cursor = new URL(nextOf(await get("/pets?limit=1")) ?? "").searchParams.get("cursor");
    expect((await get(`/store/orders?cursor=${cursor}`)).status).toBe(400);
    expect((await get(`/pets?cursor=${cursor}`)).status).toBe(200);
  });

  test("listPets 200: unknown parameters are ignored, those named like built-ins too", async () => {
    expect((await get("/pets?foo=1&foo=2&__proto__=3&constructor=4&limit=2")).status).toBe(200);
  });

  test("listPets 200: a parameter may be percent-encoded", async () => {
    expect(pets(await get("/pets?%6Cimit=%33"))).toHaveLength(3);
  });
});

describe("ETag", () => {
  test("listPets 304: a strong, a weak, a listed and any ETag", async () => {
    const first = await get("/pets?limit=3");
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\x21\x23-\x7e]+"$/);
    for (const value of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const response = await get("/pets?limit=3", { "If-None-Match": value });
      expect(response.status).toBe(304);
      expect(response.text).toBe("");
      expect(response.headers.get("etag")).toBe(etag);
    }
  });

  test("listPets 200: another ETag", async () => {
    expect((await get("/pets?limit=3", { "If-None-Match": '"other"' })).status).toBe(200);
  });

  test("getPet 304: until the pet changes", async () => {
    const { headers } = await get("/pets/1");
    const etag = headers.get("etag") ?? "";
    expect((await get("/pets/1", { "If-None-Match": etag })).status).toBe(304);
    await service.call({ method: "POST", path: "/store/orders", body: { petId: 1 } });
    expect((await get("/pets/1", { "If-None-Match": etag })).status).toBe(200);
  });

  test("listPets 304: `id=` of a pet is what getPet responds with, and its ETag follows the pet", async () => {
    const { json } = await service.call({
      method: "POST",
      path: "/pets",
      body: { name: "R", categoryId: 1 },
    });
    const { id } = json as Pet;
    const path = `/pets?id=${id}`;
    const first = await get(path);
    expect(first.text).toBe(`[${(await get(`/pets/${id}`)).text}]`);
    const etag = first.headers.get("etag") ?? "";
    for (let i = 0; i < 3; i++) expect((await get(path, { "If-None-Match": etag })).status).toBe(304);
    await service.call({ method: "POST", path: "/store/orders", body: { petId: id } });
    const changed = await get(path, { "If-None-Match": etag });
    expect([changed.status, pets(changed)[0]?.status]).toEqual([200, "pending"]);
    const next = `/pets?id=${id + 1}`;
    for (let i = 0; i < 3; i++) expect((await get(next)).text).toBe("[]");
    await service.call({ method: "POST", path: "/pets", body: { name: "S", categoryId: 1 } });
    expect(pets(await get(next)).map((pet) => pet.id)).toEqual([id + 1]);
  });

  test("listPets HEAD 200: the headers of GET without its body", async () => {
    const viaGet = await get("/pets?limit=2");
    const viaHead = await service.call({ method: "HEAD", path: "/pets?limit=2" });
    expect(viaHead.status).toBe(200);
    expect(viaHead.text).toBe("");
    for (const name of ["etag", "link", "content-type", "content-length", "x-ratelimit-limit"]) {
      expect(viaHead.headers.get(name)).toBe(viaGet.headers.get(name));
    }
    expect(viaHead.headers.get("date")).not.toBeNull();
  });
});
