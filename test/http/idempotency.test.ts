import { expect, test } from "bun:test";
import { idOf, useService } from "../service.ts";

const service = await useService();

const create = (key: string) =>
  service.post("/pets", { name: "Rex", categoryId: 1 }, { headers: { "Idempotency-Key": key } });

test("createPet 201: a retry gets the first response byte for byte, also after the pet has changed", async () => {
  const first = await create("one");
  expect(first.headers.get("idempotent-replayed")).toBeNull();
  await service.post("/store/orders", { petId: idOf(first) });
  for (const key of ["one", '"one"']) {
    const again = await create(key);
    expect([again.status, again.text]).toEqual([201, first.text]);
    expect(again.headers.get("location")).toBe(first.headers.get("location"));
    expect(again.headers.get("idempotent-replayed")).toBe("true");
  }
});

test.each([
  [201, "255 characters", "x".repeat(255)],
  [400, "256 characters", "x".repeat(256)],
  [400, "empty", '""'],
  [400, "with a letter outside ASCII", "k\u00e9"],
])("createPet %d: Idempotency-Key %s", async (status, _, value) => {
  const response = await create(value);
  expect(response.status).toBe(status);
  if (status === 400)
    expect(response.json).toMatchObject({
      code: "invalid_parameter",
      message: "Idempotency-Key must be 1 to 255 visible ASCII characters.",
    });
});
