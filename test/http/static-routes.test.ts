import { afterAll, beforeAll, describe, expect, test } from "bun:test";
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

describe("a staging server with its own settings", () => {
  const PRODUCTION = "https://api.example.com/v1";
  let staging: Service;
  beforeAll(async () => {
    staging = await startService({
      environment: "staging",
      twinUrl: PRODUCTION,
      plans: {
        free: { perMinute: 7, perDay: 70 },
        pro: { perMinute: 8, perDay: 8_000 },
        business: { perMinute: 9, perDay: 90 },
        anonymous: { perMinute: 10, perDay: 100 },
      },
      ban: { strikes: 4, graceMs: 2_000, lengthMs: 90_000 },
    });
  });
  afterAll(() => staging.stop());

  const urlOf = (path: string) => staging.url.replace("/v1", path);
  const page = async (path: string) => (await fetch(urlOf(path))).text();

  test("GET /openapi.json has its URL first, its keys, its plans and its ban rules", async () => {
    const { info, servers } = JSON.parse(await page("/openapi.json")) as {
      info: { description: string; contact: unknown };
      servers: { url: string }[];
    };
    expect(servers.map(({ url }) => url)).toEqual([staging.url, PRODUCTION]);
    expect(info.contact).toEqual({ name: "Petstore", url: urlOf("/docs") });
    expect(info.description).toContain("KEY=pet_test_…");
    expect(info.description).toContain("| Free | 7 | 70 |");
    expect(info.description).toContain("| No valid key | 10 | 100 |");
    expect(info.description).toContain("With 4 strikes the key is banned for 90 seconds.");
  });

  test("GET /docs has its URL, its keys, its plans and its ban rules, and no defaults", async () => {
    const html = await page("/docs");
    expect(html).toContain(`API=${staging.url}\nKEY=pet_test_…`);
    expect(html).toContain(`Location: ${staging.url}/pets/1\nX-RateLimit-Limit: 7\n`);
    expect(html).toContain("X-RateLimit-Remaining: 6\n");
    expect(html).toContain(`Link: &lt;${staging.url}/pets?limit=20&amp;cursor=`);
    expect(html).toContain(`&lt;${urlOf("/docs")}#deprecation&gt;`);
    expect(rowsOf(html)).toEqual(
      expect.arrayContaining([
        ["Free", "7", "70"],
        ["Pro", "8", "8,000"],
        ["Business", "9", "90"],
        ["Enterprise", "custom", "custom"],
        ["No valid key", "10", "100"],
        ["Production", PRODUCTION, "pet_live_"],
        ["Staging", staging.url, "pet_test_"],
      ]),
    );
    expect(html).toContain("Requests rejected within 2 seconds of the first 429");
    expect(html).toContain("4 strikes ban the key for 90 seconds.");
    expect(html).not.toMatch(/127\.0\.0\.1:808[01]/);
    expect(html).not.toContain("KEY=pet_live_");
    expect(rowsOf(html)).not.toContainEqual(["Free", "60", "1,000"]);
  });
});

/** The text of the cells of every table. */
function rowsOf(html: string): string[][] {
  return [...html.matchAll(/<tr>([\s\S]*?)<\/tr>/g)].map(([, row = ""]) =>
    [...row.matchAll(/<td[^>]*>([\s\S]*?)<\/td>/g)].map(([, cell = ""]) => cell.replace(/<[^>]+>/g, "")),
  );
}

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
