import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const call = (path: string, method = "GET") =>
  fetch(service.url.replace("/v1", path), { method, redirect: "manual" });

test("GET / redirects to /docs", async () => {
  const { status, headers } = await call("/");
  expect([status, headers.get("location")]).toEqual([302, "/docs"]);
});

test("GET /docs: every link within the documentation has its anchor, and every image is embedded", async () => {
  const response = await call("/docs");
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const html = await response.text();
  const anchors = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => `#${id}`));
  const links = [...html.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, url = ""]) => url);
  expect(links.filter((url) => !/^(?:https?:|data:|\/)/.test(url) && !anchors.has(url))).toEqual([]);
  expect(anchors).toContain("#deprecation");
  expect(html).toContain("<table>");
});

test("GET /openapi.json has the base URL and the plans of the server", async () => {
  const own = await startService({
    plans: {
      free: { perMinute: 7, perDay: 70 },
      pro: { perMinute: 8, perDay: 80 },
      business: { perMinute: 9, perDay: 90 },
      anonymous: { perMinute: 10, perDay: 100 },
    },
    ban: { strikes: 4, graceMs: 2_000, lengthMs: 60_000 },
  });
  const response = await fetch(own.url.replace("/v1", "/openapi.json"));
  const { info, servers } = (await response.json()) as {
    info: { description: string };
    servers: { url: string }[];
  };
  expect(servers.map(({ url }) => url)).toEqual([own.url, "http://127.0.0.1:8081/v1"]);
  expect(info.description).toContain("| Free | 7 | 70 |");
  expect(info.description).toContain("| No valid key | 10 | 100 |");
  expect(info.description).toContain("With 4 strikes the key is banned for 1 minute.");
  await own.stop();
});

test("GET /healthz 200", async () => {
  const response = await call("/healthz");
  expect([response.status, await response.text()]).toEqual([200, '{"status":"ok"}']);
  expect(response.headers.get("cache-control")).toBe("no-store");
});

test("POST /docs 405", async () => {
  const response = await call("/docs", "POST");
  expect(response.headers.get("allow")).toBe("GET, HEAD");
  expect(await response.json()).toEqual({
    code: "method_not_allowed",
    message: "POST is not allowed on this path. Allowed methods: GET, HEAD.",
    status: 405,
  });
});

test("a path outside the API 404", async () => {
  for (const path of ["/pets", "/v2/pets", "/v1x"]) {
    const response = await call(path);
    expect(await response.json()).toEqual({
      code: "not_found",
      message: "No such path. The paths of the API are listed at /docs.",
      status: 404,
    });
    expect(response.headers.get("x-ratelimit-limit")).toBeNull();
  }
});
