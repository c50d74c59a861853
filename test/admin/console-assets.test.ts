import { expect, test } from "bun:test";
import { createConsole } from "../../src/operator/console/assets.ts";
import { matchPage } from "../../src/operator/console/pages.ts";

const pages = createConsole("production");
const MAX_COMPRESSED_BYTES = 150_000;
const TIMEOUT_MS = 60_000;

async function get(path: string, headers: Record<string, string> = {}) {
  const fields = new Headers(headers);
  const response = await pages({ path, headers: { get: (name: string) => fields.get(name) } });
  return { status: response?.status, headerLines: response?.headerLines ?? "", body: response?.body ?? null };
}

async function assetPaths() {
  const { body } = await get("/");
  return [...String(body).matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
}

test(
  "the console takes less than 150 kB compressed, and nothing of it is inline or elsewhere",
  async () => {
    const { status, headerLines, body } = await get("/");
    expect(status).toBe(200);
    expect(headerLines).toContain("Cache-Control: no-cache\r\n");
    expect(String(body)).not.toMatch(
      /<style|style=|onload|<script(?![^>]*src="\/assets\/)|(?:src|href)="(?!\/assets\/|data:)/,
    );
    // The sign-in page shows it.
    expect(String(body)).toContain('data-environment="production"');
    const paths = await assetPaths();
    expect(paths).toHaveLength(2);
    let bytes = 0;
    for (const path of paths) {
      const asset = await get(path, { "accept-encoding": "br" });
      expect(asset.headerLines).toContain("Content-Encoding: br\r\n");
      expect(asset.headerLines).toContain("Cache-Control: public, max-age=31536000, immutable\r\n");
      bytes += Buffer.byteLength(asset.body ?? "");
    }
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(MAX_COMPRESSED_BYTES);
  },
  TIMEOUT_MS,
);

test("a client that accepts no compression gets the same script as one that does", async () => {
  const path = (await assetPaths()).find((each) => each.endsWith(".js")) ?? "";
  const plain = await get(path);
  const gzip = await get(path, { "accept-encoding": "gzip" });
  expect(plain.headerLines).not.toContain("Content-Encoding");
  expect(Bun.gunzipSync(Buffer.from(gzip.body ?? ""))).toEqual(new Uint8Array(Buffer.from(plain.body ?? "")));
});

test("a page that the browser has is 304, a path without a page is 404 with the page, and an old asset does not exist", async () => {
  const [, etag = ""] = /ETag: (.+)\r\n/.exec((await get("/keys/7")).headerLines) ?? [];
  expect((await get("/keys", { "if-none-match": etag })).status).toBe(304);
  const missing = await get("/nothing", { "if-none-match": etag });
  expect([missing.status, String(missing.body).includes('id="console"')]).toEqual([404, true]);
  expect((await get("/assets/console-0000000000000000.js")).status).toBeUndefined();
});

test("the URLs of the pages name them", () => {
  expect(matchPage("/")).toEqual({ name: "Overview", id: "" });
  expect(matchPage("/keys/new")).toEqual({ name: "Create a key", id: "" });
  expect(matchPage("/keys/7/edit")).toEqual({ name: "Edit a key", id: "7" });
  expect(matchPage("/pets/9223372036854775807")).toEqual({ name: "Pet", id: "9223372036854775807" });
  for (const path of ["/keys/", "/keys/0", "/keys/07", "/keys/x", "/pets/1/edit", "/api", ""]) {
    expect(matchPage(path)).toBeUndefined();
  }
});
