import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Service } from "../service.ts";
import { DATABASES, orderClient, type OrderClient, startServiceOn } from "./order-client.ts";

const INT64_MAX = "9223372036854775807";
const INT64_MIN = "-9223372036854775808";

const ABSENT_IDS = ["0", "-1", "999999999", INT64_MAX, INT64_MIN];
const MALFORMED_IDS = [
  "01",
  "+1",
  "1.0",
  "1e0",
  "0x1",
  "-0",
  "abc",
  "null",
  "%20",
  "1%20",
  "%00",
  "%zz",
  "9223372036854775808",
  "-9223372036854775809",
  "9".repeat(4_000),
];

const WRONG_UPDATES = [
  "1",
  "null",
  "[]",
  "true",
  '"completed"',
  "{}",
  '{"status":null}',
  '{"status":1}',
  '{"status":["completed"]}',
  '{"status":"placed"}',
  '{"status":"Completed"}',
  '{"status":""}',
  '{"Status":"completed"}',
];

const WRONG_PET_IDS = [
  '"1"',
  "null",
  "true",
  "1.5",
  "[1]",
  "{}",
  '""',
  "9223372036854775808",
  "-9223372036854775809",
  "1e400",
];

const WRONG_QUERIES = [
  "limit=0",
  "limit=101",
  "limit=1.0",
  "limit=a",
  "limit=",
  "limit=1&limit=1",
  `limit=${INT64_MAX}`,
  "status=Placed",
  "status=sold",
  "status=",
  "status=placed&status=placed",
  "cursor=",
  "cursor=1",
  "cursor=x",
  `cursor=${"z".repeat(500)}`,
  "cursor=%00",
];

describe.each(DATABASES)("invalid input of orders on %s", (database) => {
  let service: Service;
  let client: OrderClient;
  let order: { id: number; petId: number };

  beforeAll(async () => {
    service = await startServiceOn(database);
    client = orderClient(service, service.key);
    order = await client.newOrder();
  }, 60_000);
  afterAll(() => service.stop());

  async function expectUnchanged(): Promise<void> {
    expect(await client.list()).toEqual([order.id]);
    expect(await client.list("?status=placed")).toEqual([order.id]);
    expect(await client.petStatus(order.petId)).toBe("pending");
  }

  test.each([...ABSENT_IDS, ...MALFORMED_IDS])("getOrder and updateOrder 404: %s", async (id) => {
    for (const response of [await client.onOrder(id), await client.update(id, "completed")]) {
      expect(response.json).toMatchObject({ code: "order_not_found", status: 404 });
    }
    await expectUnchanged();
  });

  test.each(WRONG_UPDATES)("updateOrder 400: %s", async (body) => {
    const response = await client.onOrder(order.id, { method: "PATCH", body });
    expect(response.json).toMatchObject({ code: "invalid_body", status: 400 });
    await expectUnchanged();
  });

  test.each(WRONG_PET_IDS)("placeOrder 400: petId %s", async (petId) => {
    const body = `{"petId":${petId}}`;
    const response = await service.call({ method: "POST", path: "/store/orders", body });
    expect(response.json).toMatchObject({ code: "invalid_body", status: 400 });
    await expectUnchanged();
  });

  test.each(ABSENT_IDS)("placeOrder 404: petId %s", async (petId) => {
    const body = `{"petId":${petId}}`;
    const response = await service.call({ method: "POST", path: "/store/orders", body });
    expect(response.json).toMatchObject({ code: "pet_not_found", status: 404 });
    await expectUnchanged();
  });

  test.each(WRONG_QUERIES)("listOrders 400: %s", async (query) => {
    const response = await service.call({ path: `/store/orders?${query}` });
    expect(response.json).toMatchObject({ code: "invalid_parameter", status: 400 });
  });
});
