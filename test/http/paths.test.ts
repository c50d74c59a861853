import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MESSAGES } from "../contract/messages.ts";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

describe("paths and methods", () => {
  for (const path of [
    "/nothing",
    "",
    "/",
    "/pets/",
    "/pets/1/",
    "/pets/1/2",
    "//pets",
    "/Pets",
    "/store",
    "/store/orders/1/x",
    "/%70ets",
    "/pets;a=b",
  ]) {
    test(`any 404 not_found: ${path || "the base URL"}`, async () => {
      expect((await service.call({ path })).json).toMatchObject({ code: "not_found", status: 404 });
    });
  }

  for (const [method, path, allow] of [
    ["DELETE", "/pets", "GET, HEAD, POST, OPTIONS"],
    ["PUT", "/pets/1", "GET, HEAD, OPTIONS"],
    ["PUT", "/store/orders/1", "GET, HEAD, PATCH, OPTIONS"],
    ["PATCH", "/store/orders", "GET, HEAD, POST, OPTIONS"],
  ] as const) {
    test(`${method} ${path} 405: Allow lists the methods of the path`, async () => {
      const response = await service.call({ method, path });
      expect(response.json).toMatchObject({ code: "method_not_allowed", status: 405 });
      expect(response.headers.get("allow")).toBe(allow);
    });

    test(`OPTIONS ${path} 204: Allow lists the methods of the path`, async () => {
      const response = await service.call({ method: "OPTIONS", path });
      expect(response.status).toBe(204);
      expect(response.headers.get("allow")).toBe(allow);
    });
  }
});

test("getPet 410: from 5 December 2030, 00:00 UTC on; listPets stays", async () => {
  const own = await startService();
  await own.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } });
  own.clock.advance(Date.parse("2030-12-05T00:00:00Z") - own.clock.now() - 1);
  expect((await own.call({ path: "/pets/1" })).status).toBe(200);
  own.clock.advance(1);
  for (const id of ["1", "2", "abc"]) {
    const { json, headers } = await own.call({ path: `/pets/${id}` });
    expect(json).toEqual({ code: "operation_removed", message: MESSAGES.operation_removed, status: 410 });
    expect(headers.get("sunset")).toBe("Thu, 05 Dec 2030 00:00:00 GMT");
    expect(headers.get("link")).toContain('rel="successor-version"');
  }
  expect((await own.call({ path: "/pets" })).status).toBe(200);
  await own.stop();
});
