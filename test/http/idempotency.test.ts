import { afterAll, expect, test } from "bun:test";
import { startService } from "../service.ts";

const service = await startService();
afterAll(() => service.stop());

const REX = { name: "Rex", categoryId: 1 };
const post = (path: string, idempotencyKey: string, body: unknown) =>
  service.call({ method: "POST", path, body, headers: { "Idempotency-Key": idempotencyKey } });
const create = (idempotencyKey: string, body: unknown = REX) => post("/pets", idempotencyKey, body);
const idOf = ({ json }: { json: unknown }) => (json as { id: number }).id;

test("createPet 201: a retry gets the first response byte for byte, also after the pet has changed", async () => {
  const first = await create("one");
  expect(first.headers.get("idempotent-replayed")).toBeNull();
  await service.call({ method: "POST", path: "/store/orders", body: { petId: idOf(first) } });
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
