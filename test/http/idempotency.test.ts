import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const REX = { name: "Rex", categoryId: 1 };
const create = (idempotencyKey: string, options: { body?: unknown; key?: string } = {}) =>
  service.call({
    method: "POST",
    path: "/pets",
    body: options.body ?? REX,
    headers: { "Idempotency-Key": idempotencyKey },
    ...(options.key && { key: options.key }),
  });
const count = async () => ((await service.call({ path: "/pets?limit=100" })).json as unknown[]).length;

test("createPet 201: a retry gets the first response byte for byte and adds no pet", async () => {
  const first = await create("one");
  const before = await count();
  const again = await create("one");
  expect(again.status).toBe(201);
  expect(again.text).toBe(first.text);
  expect(again.headers.get("location")).toBe(first.headers.get("location"));
  expect(first.headers.get("idempotent-replayed")).toBeNull();
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await count()).toBe(before);
});

test("createPet 201: a retry gets the first response after the pet has changed", async () => {
  const first = await create("changes");
  await service.call({
    method: "POST",
    path: "/store/orders",
    body: { petId: (first.json as { id: number }).id },
  });
  expect((await create("changes")).text).toBe(first.text);
});

test("createPet 201: quotes around the key make no difference", async () => {
  expect((await create('"quoted"')).text).toBe((await create("quoted")).text);
});

test("createPet 422: the same key with a different body", async () => {
  await create("reused");
  const response = await create("reused", { body: { ...REX, name: "Other" } });
  expect(response.json).toMatchObject({ code: "idempotency_key_reused", status: 422 });
});

test("createPet 201: two API keys with the same idempotency key", async () => {
  const mine = await create("shared");
  const theirs = await create("shared", { key: (await service.newKey()).secret });
  expect(theirs.text).not.toBe(mine.text);
});

test("placeOrder 201: an idempotency key that was used for another operation", async () => {
  const pet = await create("two operations");
  expect(pet.status).toBe(400);
  const { json } = await create("two-operations");
  const order = await service.call({
    method: "POST",
    path: "/store/orders",
    body: { petId: (json as { id: number }).id },
    headers: { "Idempotency-Key": "two-operations" },
  });
  expect(order.json).toMatchObject({ status: "placed" });
});

test("createPet 201: a retry after an invalid request", async () => {
  expect((await create("later", { body: { name: "" } })).status).toBe(400);
  expect((await create("later")).status).toBe(201);
});

test("placeOrder 201: a retry after a rejected request", async () => {
  const pet = (await create("busy-pet")).json as { id: number };
  const place = (key: string) =>
    service.call({
      method: "POST",
      path: "/store/orders",
      body: { petId: pet.id },
      headers: { "Idempotency-Key": key },
    });
  const first = (await place("a")).json as { id: number };
  expect((await place("b")).status).toBe(409);
  await service.call({ method: "PATCH", path: `/store/orders/${first.id}`, body: { status: "cancelled" } });
  expect((await place("b")).status).toBe(201);
});

test("createPet: of 20 requests at once with one key, one adds a pet; the others get its response or 409", async () => {
  const before = await count();
  const responses = await Promise.all(Array.from({ length: 20 }, () => create("at-once")));
  expect(await count()).toBe(before + 1);
  for (const { status, json } of responses) {
    if (status !== 201) expect(json).toMatchObject({ code: "idempotency_conflict", status: 409 });
  }
  const bodies = new Set(responses.filter(({ status }) => status === 201).map(({ text }) => text));
  expect(bodies.size).toBe(1);
});

test("createPet 201: the key can be used again after 24 hours", async () => {
  const first = await create("daily");
  service.clock.advance(86_400_000 - 1);
  expect((await create("daily")).text).toBe(first.text);
  service.clock.advance(1);
  const later = await create("daily");
  expect(later.status).toBe(201);
  expect(later.text).not.toBe(first.text);
});

for (const [what, value] of [
  ["empty", '""'],
  ["256 characters", "x".repeat(256)],
  ["with a space", "a b"],
  ["with a letter outside ASCII", "k\u00e9"],
]) {
  test(`createPet 400: Idempotency-Key ${what}`, async () => {
    const response = await create(value ?? "");
    expect(response.json).toEqual({
      code: "invalid_parameter",
      message: "Idempotency-Key must be 1 to 255 visible ASCII characters.",
      status: 400,
    });
  });
}

test("createPet 201: Idempotency-Key of 255 characters", async () => {
  expect((await create("x".repeat(255))).status).toBe(201);
});
