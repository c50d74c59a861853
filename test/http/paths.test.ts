import { afterAll, beforeAll, describe, expect, test } from "bun:test";
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
    test(`any 404 not_found: ${path || "the base address itself"}`, async () => {
      expect((await service.call({ path })).json).toMatchObject({ code: "not_found", status: 404 });
    });
  }

  for (const [method, path, allow] of [
    ["DELETE", "/pets", "GET, HEAD, POST, OPTIONS"],
    ["PUT", "/pets/1", "GET, HEAD, OPTIONS"],
    ["GET", "/store/orders/1", "PATCH, OPTIONS"],
    ["PATCH", "/store/orders", "GET, HEAD, POST, OPTIONS"],
  ] as const) {
    test(`${method} ${path} 405: Allow lists the methods of the path`, async () => {
      const reply = await service.call({ method, path });
      expect(reply.json).toMatchObject({ code: "method_not_allowed", status: 405 });
      expect(reply.headers.get("allow")).toBe(allow);
    });

    test(`OPTIONS ${path} 204: Allow lists the methods of the path`, async () => {
      const reply = await service.call({ method: "OPTIONS", path });
      expect(reply.status).toBe(204);
      expect(reply.headers.get("allow")).toBe(allow);
    });
  }

  test("outside /v1 404: the Error body, without a key and without limits", async () => {
    const response = await fetch(service.url.replace("/v1", "/v2/pets"));
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ code: "not_found", status: 404 });
    expect(response.headers.get("x-ratelimit-limit")).toBeNull();
  });

  test("/openapi.json 200: the document, naming this address", async () => {
    const response = await fetch(service.url.replace("/v1", "/openapi.json"));
    const document = (await response.json()) as { openapi: string; servers: { url: string }[] };
    expect(document.openapi).toStartWith("3.1");
    expect(document.servers.map(({ url }) => url)).toContain(service.url);
    expect(document.servers).toHaveLength(2);
  });

  test("/docs 200: the documentation as a page", async () => {
    const response = await fetch(service.url.replace("/v1", "/docs"));
    expect(response.headers.get("content-type")).toStartWith("text/html");
    expect(await response.text()).toContain("<table>");
  });
});

describe("getPet after its removal", () => {
  test("getPet 410: from 5 December 2030 on the service's own clock; the listing goes on", async () => {
    const own = await startService();
    await own.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } });
    own.clock.advance(Date.parse("2030-12-05T00:00:00Z") - own.clock.now() - 1);
    expect((await own.call({ path: "/pets/1" })).status).toBe(200);
    own.clock.advance(1);
    for (const id of ["1", "2", "abc"]) {
      const reply = await own.call({ path: `/pets/${id}` });
      expect(reply.json).toMatchObject({ code: "operation_removed", status: 410 });
      expect(reply.headers.get("link")).toContain('rel="successor-version"');
    }
    expect((await own.call({ path: "/pets" })).status).toBe(200);
    await own.stop();
  });
});
