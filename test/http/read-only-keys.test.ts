import { expect, test } from "bun:test";
import { remainingOf, useService } from "../service.ts";

const service = await useService();
const { secret: key } = await service.newKey({ access: "read" });
await service.newPet();

const READ_ONLY = {
  code: "read_only_key",
  message: "This API key is read-only. Use GET or HEAD, or a key with write access.",
  status: 403,
};

test.each([
  ["GET", "/pets", 200],
  ["HEAD", "/pets", 200],
  ["GET", "/pets/1", 200],
  ["GET", "/store/orders", 200],
  ["OPTIONS", "/pets", 204],
  ["GET", "/nothing", 404],
  ["HEAD", "/store/orders/1", 404],
] as const)("%s %s %i: a read-only key may read", async (method, path, status) => {
  expect((await service.call({ method, path, key })).status).toBe(status);
});

test.each([
  ["POST", "/pets", { name: "Mia", categoryId: 7 }],
  ["POST", "/pets", "{"],
  ["POST", "/store/orders", { petId: 1 }],
  ["PATCH", "/store/orders/1", { status: "completed" }],
  ["DELETE", "/pets", undefined],
  ["PUT", "/pets/1", {}],
  ["POST", "/nothing", {}],
] as const)("%s %s 403: a read-only key may not write (%#)", async (method, path, body) => {
  const before = await service.call({ path: "/pets", key });
  const response = await service.call({ method, path, key, ...(body !== undefined && { body }) });
  expect(response.json).toEqual(READ_ONLY);
  expect(remainingOf(response)).toBe(remainingOf(before) - 1);
  expect((await service.call({ path: "/pets", key })).text).toBe(before.text);
});

test("any 429: a read-only key that is at its limit is limited before its method is looked at", async () => {
  const limits = { perMinute: 2, perDay: 100 };
  const { secret } = await service.newKey({ access: "read", limits });
  const post = () => service.post("/pets", {}, { key: secret });
  expect([(await post()).status, (await post()).status, (await post()).status]).toEqual([403, 403, 429]);
});
