import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

async function newPet(status?: string): Promise<number> {
  const body = { name: "Rex", categoryId: 1, status };
  return idOf(await service.call({ method: "POST", path: "/pets", body }));
}
/** A text is sent as it stands, anything else as JSON. */
const post = (body: unknown) => service.call({ method: "POST", path: "/store/orders", body });
const order = (petId: number) => post({ petId });
const patch = (id: number | string, body: unknown) =>
  service.call({ method: "PATCH", path: `/store/orders/${id}`, body });
const update = (id: number | string, status: string) => patch(id, { status });
const statusOf = async (id: number) =>
  ((await service.call({ path: `/pets/${id}` })).json as { status?: string }).status;
const idOf = ({ json }: { json: unknown }) => (json as { id: number }).id;

const INT64_MAX = "9223372036854775807";
const ABSENT_IDS = ["0", "-1", "999999999", INT64_MAX, "-9223372036854775808"];

describe("placeOrder", () => {
  test.each(["available", undefined])("201: a pet whose status is %p becomes pending", async (status) => {
    const petId = await newPet(status);
    const response = await order(petId);
    expect(response.status).toBe(201);
    expect(response.json).toEqual({
      id: expect.any(Number),
      petId,
      status: "placed",
      createdAt: "2026-11-15T12:00:00.000Z",
    });
    expect(response.headers.get("location")).toBe(`${service.url}/store/orders/${idOf(response)}`);
    expect(await statusOf(petId)).toBe("pending");
  });

  test.each(["pending", "sold"])("409: the pet is %s", async (status) => {
    const petId = await newPet(status);
    expect((await order(petId)).json).toMatchObject({ code: "pet_not_available", status: 409 });
    expect(await statusOf(petId)).toBe(status);
  });

  test("409: of fifty orders at once for one pet, one is placed", async () => {
    const petId = await newPet("available");
    const responses = await Promise.all(Array.from({ length: 50 }, () => order(petId)));
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 409)).toHaveLength(49);
  });

  test.each(ABSENT_IDS)("404: no pet is %s", async (petId) => {
    expect((await post(`{"petId":${petId}}`)).json).toMatchObject({ code: "pet_not_found", status: 404 });
  });

  test.each([
    '{"petId":"1"}',
    '{"petId":null}',
    '{"petId":true}',
    '{"petId":1.5}',
    '{"petId":[1]}',
    '{"petId":9223372036854775808}',
    '{"petId":-9223372036854775809}',
    '{"petId":1e400}',
    "{}",
  ])("400: %s", async (body) => {
    const message = expect.stringContaining("petId");
    expect((await post(body)).json).toMatchObject({ code: "invalid_body", message, status: 400 });
  });
});

describe("updateOrder", () => {
  test.each([
    ["completed", "sold"],
    ["cancelled", "available"],
  ])("200: %s makes the pet %s, and is final", async (how, becomes) => {
    const petId = await newPet();
    const id = idOf(await order(petId));
    const response = await update(id, how);
    expect(response.status).toBe(200);
    expect(response.json).toMatchObject({ id, petId, status: how });
    expect(await statusOf(petId)).toBe(becomes);
    for (const again of ["completed", "cancelled"]) {
      expect((await update(id, again)).json).toMatchObject({ code: "order_closed", status: 409 });
    }
    expect(await statusOf(petId)).toBe(becomes);
  });

  test("200: a pet whose order was cancelled can be ordered again", async () => {
    const petId = await newPet();
    await update(idOf(await order(petId)), "cancelled");
    expect((await order(petId)).status).toBe(201);
  });

  test.each([
    "1",
    "null",
    "[]",
    '"completed"',
    "{}",
    '{"status":null}',
    '{"status":["completed"]}',
    '{"status":"placed"}',
    '{"status":"Completed"}',
    '{"status":""}',
    '{"Status":"completed"}',
  ])("400: %s", async (body) => {
    const petId = await newPet();
    const id = idOf(await order(petId));
    expect((await patch(id, body)).json).toMatchObject({ code: "invalid_body", status: 400 });
    expect(await statusOf(petId)).toBe("pending");
  });
});

const MALFORMED_IDS = [
  "01",
  "+1",
  "1.0",
  "1e0",
  "0x1",
  "-0",
  "abc",
  "%20",
  "1%20",
  "%00",
  "%zz",
  "9223372036854775808",
  "-9223372036854775809",
  "9".repeat(4_000),
];

test.each([...ABSENT_IDS, ...MALFORMED_IDS])("getOrder and updateOrder 404: %s", async (id) => {
  for (const response of [
    await service.call({ path: `/store/orders/${id}` }),
    await update(id, "completed"),
  ]) {
    expect(response.json).toMatchObject({ code: "order_not_found", status: 404 });
  }
});

describe("listOrders", () => {
  test("200: ascending identifiers, status filter and pagination", async () => {
    const all = (await service.call({ path: "/store/orders?limit=100" })).json as {
      id: number;
      status: string;
    }[];
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted((a, b) => a - b));
    for (const status of ["placed", "completed", "cancelled"]) {
      const some = (await service.call({ path: `/store/orders?limit=100&status=${status}` })).json;
      expect(some).toEqual(all.filter((entry) => entry.status === status));
    }
    const first = await service.call({ path: "/store/orders?limit=1&status=placed" });
    const next = /<([^>]*)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
    expect(next).toContain("limit=1&status=placed&cursor=");
    const second = (await service.call({ path: next.slice(service.url.length) })).json as { id: number }[];
    expect(second[0]?.id).toBeGreaterThan((first.json as { id: number }[])[0]?.id ?? 0);
  });

  test.each([
    "limit=0",
    "limit=101",
    "limit=1.0",
    "limit=",
    "limit=1&limit=1",
    `limit=${INT64_MAX}`,
    "status=Placed",
    "status=sold",
    "status=",
    "status=placed&status=placed",
    "cursor=",
    "cursor=1",
    `cursor=${"z".repeat(500)}`,
    "cursor=%00",
  ])("400: %s", async (query) => {
    const response = await service.call({ path: `/store/orders?${query}` });
    expect(response.json).toMatchObject({ code: "invalid_parameter", status: 400 });
  });
});
