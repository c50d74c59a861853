import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

async function newPet(status?: string): Promise<number> {
  const { json } = await service.call({
    method: "POST",
    path: "/pets",
    body: { name: "Rex", categoryId: 1, status },
  });
  return (json as { id: number }).id;
}
const order = (petId: unknown) => service.call({ method: "POST", path: "/store/orders", body: { petId } });
const update = (id: number | string, status: unknown) =>
  service.call({ method: "PATCH", path: `/store/orders/${id}`, body: { status } });
const statusOf = async (id: number) =>
  ((await service.call({ path: `/pets/${id}` })).json as { status?: string }).status;
const idOf = ({ json }: { json: unknown }) => (json as { id: number }).id;

describe("placeOrder", () => {
  for (const status of ["available", undefined]) {
    test(`placeOrder 201: a pet whose status is ${status ?? "absent"} becomes pending`, async () => {
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
  }

  for (const status of ["pending", "sold"]) {
    test(`placeOrder 409: the pet is ${status}`, async () => {
      const petId = await newPet(status);
      expect((await order(petId)).json).toMatchObject({ code: "pet_not_available", status: 409 });
      expect(await statusOf(petId)).toBe(status);
    });
  }

  test("placeOrder 409: of fifty orders at once for one pet, one is placed", async () => {
    const petId = await newPet("available");
    const responses = await Promise.all(Array.from({ length: 50 }, () => order(petId)));
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 409)).toHaveLength(49);
  });

  test("placeOrder 404: no such pet", async () => {
    expect((await order(987_654_321)).json).toMatchObject({ code: "pet_not_found", status: 404 });
  });

  for (const petId of ["1", null, 1.5, true, undefined, []]) {
    test(`placeOrder 400: petId ${JSON.stringify(petId)}`, async () => {
      expect((await order(petId)).json).toMatchObject({
        code: "invalid_body",
        message: expect.stringContaining("petId"),
      });
    });
  }
});

describe("updateOrder", () => {
  for (const [how, becomes] of [
    ["completed", "sold"],
    ["cancelled", "available"],
  ] as const) {
    test(`updateOrder 200: ${how} makes the pet ${becomes}, and is final`, async () => {
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
  }

  test("updateOrder 200: a pet whose order was cancelled can be ordered again", async () => {
    const petId = await newPet();
    await update(idOf(await order(petId)), "cancelled");
    expect((await order(petId)).status).toBe(201);
  });

  for (const id of ["01", "abc", "99999999", "9223372036854775808", "%31%zz"]) {
    test(`updateOrder 404: ${id} is not the identifier of an order`, async () => {
      expect((await update(id, "completed")).json).toMatchObject({ code: "order_not_found", status: 404 });
    });
  }

  for (const status of ["placed", "sold", "Completed", "", null, 1, undefined]) {
    test(`updateOrder 400: status ${JSON.stringify(status)}`, async () => {
      const id = idOf(await order(await newPet()));
      expect((await update(id, status)).json).toMatchObject({
        code: "invalid_body",
        message: expect.stringContaining("status"),
      });
    });
  }
});

describe("listOrders", () => {
  test("listOrders 200: ascending identifiers, status filter and pagination", async () => {
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

  for (const query of ["limit=0", "status=available", "cursor=x"]) {
    test(`listOrders 400: ?${query}`, async () => {
      expect((await service.call({ path: `/store/orders?${query}` })).status).toBe(400);
    });
  }
});
