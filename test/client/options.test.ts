import { afterAll, describe, expect, test } from "bun:test";
import { type DeprecationEvent, Petstore, type RequestEvent } from "../../src/client/index.ts";
import { startService } from "../service.ts";
import { json, NEW_PET, PET, rejection, scripted } from "./scripted.ts";

const service = await startService();
afterAll(() => service.stop());

describe("request", () => {
  test("sends what has no method, with exact integers and an Idempotency-Key", async () => {
    const petstore = new Petstore({ key: service.key, baseUrl: service.url });
    const body = { name: "Rex", categoryId: 9007199254740993n };
    const { data, response } = await petstore.request("POST", "/pets", { body }).withResponse();
    expect(data).toMatchObject({ categoryId: 9007199254740993n });
    expect(response.status).toBe(201);
    expect(await petstore.request("GET", "/pets", { query: { limit: 1 } })).toEqual([data]);
    const { petstore: observed, sent } = scripted([json(201, PET), json(200, "[]")]);
    await observed.request("POST", "/pets", { body });
    await observed.request("GET", "/pets", { query: { status: undefined, id: 7n } });
    expect(sent[0]?.idempotencyKey).toMatch(/^[0-9a-f]{32}$/);
    expect([sent[1]?.url, sent[1]?.idempotencyKey]).toEqual(["http://petstore.test/v1/pets?id=7", null]);
  });

  test("sends HEAD, whose response has no data", async () => {
    const petstore = new Petstore({ key: service.key, baseUrl: service.url });
    const { data, response } = await petstore.request("HEAD", "/pets").withResponse();
    expect([data, response.status]).toEqual([undefined, 200]);
    expect(await rejection(petstore.request("head", "/store/orders/999999"))).toMatchObject({ status: 404 });
  });

  test("takes 304 for the caller's own If-None-Match as no data, and does not keep it", async () => {
    const petstore = new Petstore({ key: service.key, baseUrl: service.url, cache: 10 });
    const etag = (await service.call({ path: "/pets?limit=7" })).headers.get("ETag") ?? "";
    const options = { query: { limit: 7 }, headers: { "If-None-Match": etag } };
    const { data, response } = await petstore.request("GET", "/pets", options).withResponse();
    expect([data, response.status, response.etag]).toEqual([undefined, 304, etag]);
    expect((await petstore.pets.listPage({ limit: 7 })).response.status).toBe(200);
  });

  test("takes 204 as no data, and no path to another host", async () => {
    const { petstore, sent } = scripted([new Response(null, { status: 204 })]);
    expect(await petstore.request("DELETE", "/pets/1")).toBeUndefined();
    expect(await rejection(petstore.request("GET", "@example.com/"))).toBeInstanceOf(TypeError);
    expect(sent).toHaveLength(1);
  });
});

test("headers of a call are sent, beside those of the client", async () => {
  const { petstore, sent } = scripted([json(201, PET), json(200, "[]")]);
  await petstore.pets.create(NEW_PET, { headers: { "X-Request-Id": "mine", Authorization: "Bearer other" } });
  const { headers } = sent[0] ?? {};
  expect(headers?.get("X-Request-Id")).toBe("mine");
  expect(headers?.get("Authorization")).toBe("Bearer pet_live_x");
  expect(headers?.get("User-Agent")).toMatch(/^petstore-client\/\d+\.\d+\.\d+$/);
  await petstore.pets.listPage({ headers: { "User-Agent": "my-shop/2" } });
  expect(sent[1]?.headers.get("User-Agent")).toBe("my-shop/2");
});

test('with ids: "string", results are JSON and their identifiers are arguments', async () => {
  const petstore = new Petstore({ key: service.key, baseUrl: service.url, ids: "string" });
  const pet = await petstore.pets.create({ name: "Ada", categoryId: "9007199254740993" });
  const id: string = pet.id;
  expect(pet).toMatchObject({ name: "Ada", categoryId: "9007199254740993" });
  expect(JSON.parse(JSON.stringify(pet))).toEqual(pet);
  expect(await petstore.pets.byIds([id])).toEqual([pet]);
  const order = await petstore.orders.place({ petId: id });
  expect((await petstore.orders.complete(order.id)).petId).toBe(id);
});

test("options may be an object of a class, and null is the default", async () => {
  class Options {
    readonly baseUrl = service.url;
    readonly events: string[] = [];
    get key() {
      return service.key;
    }
    onRequest({ method }: RequestEvent) {
      this.events.push(method);
    }
    onDeprecation({ url }: DeprecationEvent) {
      this.events.push(url);
    }
  }
  const options = new Options();
  // Programs in JavaScript pass null.
  Object.assign(options, { fetch: null, timeoutMs: null, deadlineMs: null, maxRetries: null, cache: null });
  const petstore = new Petstore(options);
  const { id } = await petstore.pets.create(NEW_PET);
  await petstore.pets.get(id);
  expect(options.events).toEqual(["POST", "GET", `${service.url}/pets/${id}`]);
});

test("toArray gives the first ones and requests no further page", async () => {
  const next = { Link: '</v1/pets?cursor=abc>; rel="next"' };
  const { petstore, sent } = scripted([json(200, `[${PET},${PET}]`, next), json(200, `[${PET},${PET}]`)]);
  expect(await petstore.pets.list().toArray({ max: 3 })).toHaveLength(3);
  expect(sent).toHaveLength(2);
  const { petstore: other, sent: once } = scripted([json(200, `[${PET},${PET}]`, next)]);
  expect(await other.pets.list().toArray({ max: 2 })).toHaveLength(2);
  expect(once).toHaveLength(1);
  const { toArray } = other.pets.list();
  for (const args of [[], [{}]]) {
    const error = await rejection(Reflect.apply(toArray, undefined, args));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toHaveProperty("message", expect.stringContaining("toArray({ max: 1000 })"));
  }
});

describe("cache", () => {
  test("a response that has not changed is not transferred again", async () => {
    const statuses: number[] = [];
    const petstore = new Petstore({
      key: service.key,
      baseUrl: service.url,
      cache: 10,
      onResponse: ({ response }) => void statuses.push(response.status),
    });
    for (let i = 0; i < 3; i++) await petstore.pets.create(NEW_PET);
    const first = await petstore.pets.listPage({ limit: 2 });
    const again = await petstore.pets.listPage({ limit: 2 });
    expect([again.items, again.nextCursor]).toEqual([first.items, first.nextCursor]);
    expect(again.nextCursor).toBeString();
    expect(again.items[0]).not.toBe(first.items[0]);
    expect(statuses).toEqual([201, 201, 201, 200, 304]);
  });

  test.each([
    [{}, [null, null, null, null]],
    [{ cache: 1 }, [null, null, '"a"', null]],
  ])("keeps as many responses as it was told, those that were used last: %j", async (options, sentEtags) => {
    const page = () => json(200, "[]", { ETag: '"a"' });
    const { petstore, sent } = scripted([page(), page(), page(), page()], options);
    for (const limit of [1, 2, 2, 1]) await petstore.pets.listPage({ limit });
    expect(sent.map(({ headers }) => headers.get("If-None-Match"))).toEqual(sentEtags);
  });
});

test("without a key the client has that of PETSTORE_KEY, and with one it does not look there", async () => {
  const baseUrl = service.url;
  const plan = async (petstore: Petstore) => (await petstore.key.get()).plan;
  const before = process.env["PETSTORE_KEY"];
  try {
    process.env["PETSTORE_KEY"] = service.key;
    expect(await plan(new Petstore({ baseUrl }))).toBe("enterprise");
    expect(() => new Petstore({ key: "", baseUrl })).toThrow("Set key or PETSTORE_KEY.");
    process.env["PETSTORE_KEY"] = "pet_live_wrong";
    expect(await plan(new Petstore({ key: service.key, baseUrl }))).toBe("enterprise");
    delete process.env["PETSTORE_KEY"];
    expect(() => new Petstore({ baseUrl })).toThrow("Set key or PETSTORE_KEY.");
  } finally {
    if (before !== undefined) process.env["PETSTORE_KEY"] = before;
  }
});
