import { afterEach, expect, spyOn, test } from "bun:test";
import { Petstore } from "../../src/client/index.ts";
import { idOf, useService } from "../service.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

const service = await useService();
afterEach(() => void (service.clock.stepMs = 0));

const list = (key: string) => service.call({ path: "/pets", key });
const createPet = (headers: Record<string, string> = {}) =>
  service.post("/pets", { name: "Rex", categoryId: 1 }, { headers });

for (const isSeenBefore of [true, false]) {
  const before = isSeenBefore ? "used before" : "not used before";

  test(`any 401: a key that has expired by the machine's clock after it was set, ${before}`, async () => {
    const { secret } = await service.newKey({ expiresAt: service.clock.now() + HOUR_MS });
    if (isSeenBefore) expect((await list(secret)).status).toBe(200);
    service.clock.step(DAY_MS);
    const message = "This API key has expired. Whoever gave it to you can extend it.";
    expect((await list(secret)).json).toEqual({ code: "invalid_api_key", message, status: 401 });
    service.clock.step(-DAY_MS);
    expect((await list(secret)).status).toBe(200);
  });

  test(`any 401: a rotated secret whose overlap has ended by the machine's clock, ${before}`, async () => {
    const { id, secret } = await service.newKey();
    const successor = await service.newSecret(id, service.clock.now() + HOUR_MS);
    if (isSeenBefore) expect((await list(secret)).status).toBe(200);
    service.clock.step(DAY_MS);
    const message = expect.stringContaining("replaced when the key was rotated");
    expect((await list(secret)).json).toMatchObject({ code: "invalid_api_key", message });
    expect((await list(successor)).status).toBe(200);
    service.clock.step(-DAY_MS);
    expect((await list(secret)).status).toBe(200);
  });
}

test("createPet: a clock that is set forward by 500 days forgets no Idempotency-Key", async () => {
  const headers = { "Idempotency-Key": "order-500-days" };
  const first = await createPet(headers);
  service.clock.step(500 * DAY_MS);
  expect(idOf(await createPet(headers))).toBe(idOf(first));
  service.clock.step(-500 * DAY_MS);
  expect(idOf(await createPet(headers))).toBe(idOf(first));
});

for (const byMs of [DAY_MS, -DAY_MS]) {
  test(`any 429: the machine's clock set by ${byMs} ms opens no new window, and Reset follows it`, async () => {
    const { secret } = await service.newKey({ limits: { perMinute: 2, perDay: 100 } });
    await list(secret);
    await list(secret);
    service.clock.step(byMs);
    const { json, headers } = await list(secret);
    expect(json).toMatchObject({ code: "rate_limited" });
    expect(headers.get("retry-after")).toBe("60");
    expect(Number(headers.get("x-ratelimit-reset"))).toBe(service.clock.now() / 1000 + 60);
    service.clock.advance(60_000);
    expect((await list(secret)).status).toBe(200);
  });
}

test("placeOrder 201: createdAt follows the machine's clock", async () => {
  const petId = await service.newPet();
  service.clock.step(DAY_MS);
  const { json } = await service.post("/store/orders", { petId });
  expect(json).toMatchObject({ createdAt: service.clock.timeIn(0) });
});

test("documentation, OpenAPI document and client say of getPet that it will be removed, and then that it was", async () => {
  const origin = new URL(service.url).origin;
  const texts = async () => {
    const of = async (path: string) => (await fetch(origin + path)).text();
    const { paths } = JSON.parse(await of("/openapi.json"));
    const [callout] = /<blockquote.*?<\/blockquote>/s.exec(await of("/docs/reference/getPet")) ?? [];
    const { description } = paths["/pets/{petId}"].get;
    return [description, await of("/docs/deprecation.md"), callout] as string[];
  };
  const warning = async () => {
    const warn = spyOn(console, "warn").mockImplementation(() => {});
    try {
      const petstore = new Petstore({ key: service.key, baseUrl: service.url });
      await petstore.pets.get(1).catch(() => {});
      return String(warn.mock.calls[0]?.[0]);
    } finally {
      warn.mockRestore();
    }
  };
  const now = service.clock.now();
  for (const text of [...(await texts()), await warning()]) {
    expect(text).toContain("will be removed on ");
    expect(text).not.toMatch(/was removed|Removed/);
  }
  service.clock.step(Date.parse("2030-12-05T00:00:00Z") - now);
  for (const text of [...(await texts()), await warning()]) {
    expect(text).toMatch(/(?:was removed|Removed(?:<\/strong>)?) on /);
    expect(text).not.toContain("will be removed");
  }
  service.clock.step(now - service.clock.now());
  for (const text of await texts()) expect(text).toContain("will be removed on ");
});

test("createPet 201: an Idempotency-Key is forgotten after 24 hours of the machine's clock", async () => {
  const create = async () => idOf(await createPet({ "Idempotency-Key": "one" }));
  const first = await create();
  service.clock.step(DAY_MS - 1);
  expect(await create()).toBe(first);
  service.clock.step(1);
  expect(await create()).toBe(first + 1);
});

test("getPet 410: removed on 5 December 2030 of the machine's clock, while listPets stays", async () => {
  const id = await service.newPet();
  const get = async (path: string) => (await service.call({ path })).status;
  service.clock.step(Date.parse("2030-12-05T00:00:00Z") - service.clock.now() - 1);
  expect(await get(`/pets/${id}`)).toBe(200);
  const locationOf = async () => (await createPet()).headers.get("location");
  expect(await locationOf()).toBe(`${service.url}/pets?id=${id + 1}`);
  service.clock.step(1);
  expect(await locationOf()).toBe(`${service.url}/pets?id=${id + 2}`);
  expect([await get(`/pets/${id}`), await get("/pets/abc"), await get("/pets")]).toEqual([410, 410, 200]);
  service.clock.step(-DAY_MS);
  expect(await get(`/pets/${id}`)).toBe(200);
});
