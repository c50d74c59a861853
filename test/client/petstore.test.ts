import { afterAll, describe, expect, spyOn, test } from "bun:test";
import * as client from "../../src/client/index.ts";
import { startService } from "../service.ts";
import { rejection } from "./scripted.ts";
import { withServiceValues } from "../pets.ts";

const service = await startService();
const petstore = new client.Petstore({ key: service.key, baseUrl: service.url });
afterAll(() => service.stop());

const BEYOND_DOUBLES = 9007199254740993n;

describe("pets", () => {
  test("a pet is created with number or bigint, and identifiers are exact bigints", async () => {
    const exact = await petstore.pets.create({ name: "Ada", categoryId: BEYOND_DOUBLES, status: "sold" });
    const ada = { name: "Ada", categoryId: BEYOND_DOUBLES, status: "sold" };
    expect<object>(exact).toEqual(withServiceValues(ada, exact));
    expect(typeof exact.id).toBe("bigint");
    expect(await petstore.pets.byIds([exact.id, exact.id + 1_000n])).toEqual([exact]);
    const plain = await petstore.pets.create({ name: 'R"ex\n', categoryId: -7 });
    const rex = { id: exact.id + 1n, name: 'R"ex\n', categoryId: -7n };
    expect<object>(plain).toEqual(withServiceValues(rex, plain));
  });

  test("list yields every pet of the status over all pages, once", async () => {
    const created: bigint[] = [];
    for (let i = 0; i < 7; i++)
      created.push((await petstore.pets.create({ name: `pet ${i}`, categoryId: 1, status: "pending" })).id);
    const listed: bigint[] = [];
    for await (const { id } of petstore.pets.list({ status: "pending", limit: 3 })) listed.push(id);
    expect(listed).toEqual(created);
    const sizes: number[] = [];
    for await (const { items } of petstore.pets.list({ status: "pending", limit: 3 }).pages())
      sizes.push(items.length);
    expect(sizes).toEqual([3, 3, 1]);
  });

  test("list yields the pets of a category, also with a status, whatever type the category has", async () => {
    for (const status of ["sold", "available", "sold"] as const)
      await petstore.pets.create({ name: "Milo", categoryId: BEYOND_DOUBLES + 1n, status });
    const [first, second, third] = await petstore.pets
      .list({ categoryId: BEYOND_DOUBLES + 1n, limit: 2 })
      .toArray({ max: 9 });
    expect([first, second, third].map((pet) => pet?.status)).toEqual(["sold", "available", "sold"]);
    const { items } = await petstore.pets.listPage({ categoryId: "9007199254740994", status: "sold" });
    expect(items).toEqual([first, third].flatMap((pet) => pet ?? []));
    expect((await petstore.pets.listPage({ categoryId: -7 })).items).toMatchObject([{ categoryId: -7n }]);
    expect(petstore.pets.listPage({ categoryId: 2 ** 53 })).rejects.toThrow(TypeError);
  });

  test("a page has the cursor of the next one", async () => {
    const first = await petstore.pets.listPage({ status: "pending", limit: 4 });
    expect(first.items).toHaveLength(4);
    const last = await petstore.pets.listPage({ status: "pending", limit: 4, cursor: first.nextCursor });
    expect(last.items).toHaveLength(3);
    expect(last.nextCursor).toBeUndefined();
    expect(last.response.status).toBe(200);
    const { data, response } = await petstore.pets.listPage({ status: "pending", limit: 4 }).withResponse();
    expect([data.items, response]).toEqual([first.items, data.response]);
  });

  test("get warns once, or tells the hook each time", async () => {
    const warn = spyOn(console, "warn").mockImplementation(() => {});
    try {
      await petstore.pets.get(1);
      await petstore.pets.get(2n);
      expect(warn.mock.calls.map(([message]) => String(message))).toEqual([
        expect.stringMatching(
          /is deprecated and will be removed on Thu, 05 Dec 2030 00:00:00 GMT\. See http:\S+\/docs\/deprecation$/,
        ),
      ]);
    } finally {
      warn.mockRestore();
    }
    const events: client.DeprecationEvent[] = [];
    const onDeprecation = (event: client.DeprecationEvent) => void events.push(event);
    const observed = new client.Petstore({ key: service.key, baseUrl: service.url, onDeprecation });
    await observed.pets.get(1);
    expect(events.map(({ since, sunset }) => [since?.toISOString(), sunset?.toISOString()])).toEqual([
      ["2026-11-14T00:00:00.000Z", "2030-12-05T00:00:00.000Z"],
    ]);
  });
});

describe("orders", () => {
  test("an order is placed, fetched, completed and listed", async () => {
    const pet = await petstore.pets.create({ name: "Bella", categoryId: 1 });
    const order = await petstore.orders.place({ petId: pet.id });
    expect(order).toEqual({ id: order.id, petId: pet.id, status: "placed", createdAt: order.createdAt });
    expect(await petstore.orders.get(order.id)).toEqual(order);
    expect((await petstore.orders.complete(order.id)).status).toBe("completed");
    const listed: client.Order[] = [];
    for await (const each of petstore.orders.list({ status: "completed" })) listed.push(each);
    expect(listed).toEqual([{ ...order, status: "completed" }]);
  });

  test("an order that was closed in another way is a ConflictError, and so is one without the ETag", async () => {
    const pet = await petstore.pets.create({ name: "Milo", categoryId: 1 });
    const { id } = await petstore.orders.place({ petId: pet.id });
    const { response } = await petstore.orders.get(id).withResponse();
    const ifMatch = response.etag;
    expect(ifMatch).toBeString();
    const cancelled = await petstore.orders.cancel(id, { ifMatch });
    expect(await petstore.orders.cancel(id)).toEqual(cancelled);
    for (const [again, code, status] of [
      [petstore.orders.complete(id), "order_closed", 409],
      [petstore.orders.complete(id, { ifMatch }), "precondition_failed", 412],
    ] as const) {
      const error = await rejection(again);
      expect(error).toBeInstanceOf(client.ConflictError);
      expect(error).toMatchObject({ code, status });
    }
  });

  test("key.get has the key with exact identifiers, and counts as numbers", async () => {
    const key = await petstore.key.get();
    expect(key).toMatchObject({ name: "test", plan: "enterprise", access: "write", expiresAt: null });
    expect([typeof key.id, typeof key.minute.remaining]).toEqual(["bigint", "number"]);
    expect(key.day.limit).toBe(1_000_000_000);
  });
});

describe("errors", () => {
  test("have class, code, status and request id", async () => {
    const error = await rejection(petstore.orders.get(2n ** 60n));
    expect(error).toBeInstanceOf(client.NotFoundError);
    expect(error).toBeInstanceOf(client.ApiError);
    expect(error).toBeInstanceOf(client.PetstoreError);
    expect(error).toMatchObject({ name: "NotFoundError", code: "order_not_found", status: 404 });
    expect(error).toHaveProperty("requestId", expect.stringMatching(/\S/));
  });

  test("400, 401, 403 and 429 have classes of their own", async () => {
    const withKey = (key: string) =>
      new client.Petstore({ key, baseUrl: service.url, waitForRateLimit: false, deadlineMs: 900 });
    const blank = rejection(petstore.pets.create({ name: " ", categoryId: 1 }));
    expect(await blank).toBeInstanceOf(client.InvalidRequestError);
    const unknown = rejection(withKey("pet_live_x").pets.listPage());
    expect(await unknown).toBeInstanceOf(client.AuthenticationError);
    const { secret: reader } = await service.newKey({ access: "read" });
    const readOnly = rejection(withKey(reader).pets.create({ name: "Rex", categoryId: 1 }));
    expect(await readOnly).toBeInstanceOf(client.PermissionError);
    const { secret } = await service.newKey({ limits: { perMinute: 1, perDay: 10 } });
    await withKey(secret).pets.listPage();
    const limited = await rejection(withKey(secret).pets.listPage());
    expect(limited).toBeInstanceOf(client.RateLimitError);
    expect(limited).toMatchObject({ code: "rate_limited", retryAfter: 60 });
  });
});

describe("responses", () => {
  test("withResponse has the request id, the rate limit and the headers", async () => {
    const { secret } = await service.newKey({ limits: { perMinute: 50, perDay: 1_000 } });
    const limited = new client.Petstore({ key: secret, baseUrl: `${service.url}/` });
    const { data, response } = await limited.pets.create({ name: "Luna", categoryId: 2 }).withResponse();
    expect(data.name).toBe("Luna");
    expect(response).toMatchObject({ status: 201, replayed: false, attempts: 1 });
    expect(response.rateLimit).toMatchObject({ limit: 50, remaining: 49 });
    expect(response.headers.get("Location")).toBe(`${service.url}/pets?id=${data.id}`);
    expect(response.headers.get("X-Request-Id")).toBe(response.requestId ?? "none");
  });

  test("a given idempotency key makes the second call a replay", async () => {
    const create = () => petstore.pets.create({ name: "Coco", categoryId: 3 }, { idempotencyKey: "coco-1" });
    const first = await create();
    const { data, response } = await create().withResponse();
    expect(data).toEqual(first);
    expect(response.replayed).toBe(true);
  });

  test("hooks see requests and responses", async () => {
    const seen: string[] = [];
    const observed = new client.Petstore({
      key: service.key,
      baseUrl: service.url,
      onRequest: ({ method, url, attempt }) => void seen.push(`${method} ${url} ${attempt}`),
      onResponse: ({ response }) => void seen.push(String(response.status)),
    });
    await observed.pets.listPage({ limit: 1 });
    expect(seen).toEqual([`GET ${service.url}/pets?limit=1 1`, "200"]);
  });
});
