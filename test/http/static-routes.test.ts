import { shortDuration } from "../../src/text/durations.ts";
import { describe, expect, test } from "bun:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { encodingOf } from "../../src/api/content-encoding.ts";
import { startService, useService } from "../service.ts";

const STAGING = "https://staging.example.com/v1";
const service = await useService({ otherEnvironmentUrl: STAGING });

test("GET /openapi.yaml is the document of /openapi.json, with both URLs, exact integers and an ETag", async () => {
  const urlOf = (path: string) => service.url.replace("/v1", path);
  const response = await fetch(urlOf("/openapi.yaml"));
  expect(response.headers.get("content-type")).toBe("application/yaml");
  const yaml = await response.text();
  expect(Bun.YAML.parse(yaml)).toEqual(await (await fetch(urlOf("/openapi.json"))).json());
  expect(yaml).toContain(`servers:\n  - url: "${service.url}"\n`);
  expect(yaml).toContain(`  - url: "${STAGING}"\n`);
  expect(yaml).toContain("minimum: -9223372036854775808\n");
  const headers = { "If-None-Match": response.headers.get("etag") ?? "" };
  expect((await fetch(urlOf("/openapi.yaml"), { headers })).status).toBe(304);
});

describe("files for crawlers and researchers", () => {
  const textOf = async (url: string, path: string) => {
    const response = await fetch(url.replace("/v1", path));
    return response.status === 200 ? response.text() : response.status;
  };

  test("robots.txt keeps crawlers from the API, and on staging from everything", async () => {
    expect(await textOf(service.url, "/robots.txt")).toBe("User-agent: *\nDisallow: /v1/\n");
    await using staging = await startService({ environment: "staging" });
    expect(await textOf(staging.url, "/robots.txt")).toBe("User-agent: *\nDisallow: /\n");
  });

  test("security.txt names the contacts and expires in half a year, counted anew every day", async () => {
    const path = "/.well-known/security.txt";
    expect(await textOf(service.url, path)).toBe(404);
    const securityContacts = ["mailto:security@example.com", "https://example.com/security"];
    await using other = await startService({ securityContacts });
    const expiry = async () =>
      /^Expires: (?<time>.*)$/m.exec(String(await textOf(other.url, path)))?.[1] ?? "";
    const first = await expiry();
    expect(await textOf(other.url, path)).toBe(`Contact: mailto:security@example.com
Contact: https://example.com/security
Expires: ${first}
Canonical: ${other.url.replace("/v1", path)}
`);
    const days = (Date.parse(first) - other.clock.now()) / 86_400_000;
    expect(days).toBeGreaterThan(179);
    expect(days).toBeLessThanOrEqual(180);
    other.clock.advance(86_400_000);
    expect(Date.parse(await expiry()) - Date.parse(first)).toBe(86_400_000);
  });
});

describe("public pages", () => {
  const page = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    fetch(service.url.replace("/v1", path), { method, headers, decompress: false });

  test("/docs, /openapi.json and /openapi.yaml are compressed for clients that accept it", async () => {
    for (const path of ["/docs", "/openapi.json", "/openapi.yaml"]) {
      const plain = await (await page(path, { "Accept-Encoding": "identity" })).text();
      for (const [encoding, decompress] of [
        ["gzip", gunzipSync],
        ["br", brotliDecompressSync],
      ] as const) {
        const response = await page(path, { "Accept-Encoding": encoding });
        expect(response.headers.get("content-encoding")).toBe(encoding);
        expect(response.headers.get("vary")).toBe("Accept-Encoding");
        const bytes = new Uint8Array(await response.arrayBuffer());
        expect(bytes.length).toBeLessThan(plain.length / 3);
        expect(decompress(bytes).toString()).toBe(plain);
      }
    }
  });

  test.each([
    [null, "identity"],
    ["", "identity"],
    ["gzip, deflate", "gzip"],
    ["gzip, deflate, br, zstd", "br"],
    ["br;q=0, gzip;q=0.5", "gzip"],
    ["gzip;q=0", "identity"],
    ["*", "br"],
    ["*;q=0", "identity"],
    ["GZIP", "gzip"],
    ["gzip;q=nonsense", "identity"],
    ["br;q=0.5, gzip;q=0.8", "gzip"],
    ["gzip, br;q=1", "br"],
    ["gzip, identity", "gzip"],
    ["gzip;q=0.5, identity", "identity"],
    [`gzip, ${"x".repeat(494)}`, "gzip"],
    [`gzip, ${"x".repeat(495)}`, "identity"],
  ])("Accept-Encoding %p selects %s", (header, encoding) => {
    expect(encodingOf(header)).toBe(encoding as never);
  });

  test("304 for the ETag of the same encoding, and HEAD has the headers alone", async () => {
    const first = await page("/docs", { "Accept-Encoding": "gzip" });
    const etag = first.headers.get("etag") ?? "";
    expect(first.headers.get("cache-control")).toBe("public, max-age=300");
    const same = await page("/docs", { "Accept-Encoding": "gzip", "If-None-Match": etag });
    expect([same.status, await same.text()]).toEqual([304, ""]);
    expect((await page("/docs", { "If-None-Match": etag, "Accept-Encoding": "br" })).status).toBe(200);
    const head = await page("/docs", { "Accept-Encoding": "gzip" }, "HEAD");
    const length = first.headers.get("content-length");
    expect([head.headers.get("content-length"), await head.text()]).toEqual([length, ""]);
  });

  test("they have a quota per address, beside that of requests without a key; /healthz has none", async () => {
    const anonymous = { perMinute: 3, perDay: 100 };
    const own = await startService({ policy: { plans: { anonymous } } });
    const get = (path: string, headers = {}) =>
      fetch(own.url.replace("/v1", path), { headers, redirect: "manual" });
    const statusesOf = async (...paths: string[]) => {
      const responses = await Promise.all(paths.map((path) => get(path)));
      for (const { headers, url } of responses)
        expect(headers.has("x-ratelimit-remaining")).toBe(!url.endsWith("/healthz"));
      return responses.map(({ status }) => status);
    };
    expect(await statusesOf("/unknown", "/v1/pets", "/unknown", "/v1/pets")).toEqual([404, 401, 404, 429]);
    expect(await statusesOf("/docs", "/openapi.json", "/", "/docs", "/healthz")).toEqual([
      200, 200, 200, 429, 200,
    ]);
    const page = await get("/docs", { Accept: "text/html" });
    expect([page.status, page.headers.get("content-type")]).toEqual([429, "text/html; charset=utf-8"]);
    const seconds = page.headers.get("retry-after");
    const html = await page.text();
    expect(html).toContain(`<meta http-equiv="refresh" content="${seconds}">`);
    expect(html).toContain(`loads again by itself in ${shortDuration(Number(seconds) * 1_000)}.`);
    await own.stop();
  });
});

describe("X-Request-Id", () => {
  const idOf = async (sent?: string, path = "/v1/pets") => {
    const headers = sent === undefined ? {} : { "X-Request-Id": sent };
    return (await fetch(service.url.replace("/v1", path), { headers })).headers.get("x-request-id");
  };

  test("a sound one of the client comes back", async () => {
    for (const id of ["a", "0198a6f2-6d5e-7cc1-9a53-2f6f1d8f3b11", "x".repeat(128)])
      expect(await idOf(id)).toBe(id);
  });

  test("any other is replaced by a new one, different for each request", async () => {
    const sent = [undefined, undefined, "two words", "x".repeat(129), "ä"];
    const ids = await Promise.all(sent.map((id) => idOf(id)));
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-z]+$/);
    expect(new Set(ids).size).toBe(ids.length);
    expect(await idOf(undefined, "/healthz")).toMatch(/^[0-9a-f]{8}-/);
  });

  test("a cached page has the id of its own request", async () => {
    const get = async () => (await service.call({ path: "/pets?limit=7" })).headers.get("x-request-id");
    expect(new Set([await get(), await get(), await get(), await get()]).size).toBe(4);
  });
});
