import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { version } from "../../package.json" with { type: "json" };
import { textOf } from "../../src/docs-site/markdown.ts";
import { anchorOf } from "../../src/docs-site/page-content.ts";
import { GUIDE_SOURCES } from "../../src/docs-site/sources.ts";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const TIMEOUT_MS = 60_000;
const HTML = { Accept: "text/html" };

function get(path: string, headers: Record<string, string> = {}) {
  return fetch(service.url.replace("/v1", path), { headers, redirect: "manual", decompress: false });
}

const sizeOf = async (response: Response) => (await response.arrayBuffer()).byteLength;

test(
  "the first view of a page takes at most 30 kB compressed",
  async () => {
    for (const path of ["/", "/docs", "/docs/api", "/docs/reference/createPet", "/docs/reference/errors"]) {
      const html = await (await get(path, { ...HTML, "Accept-Encoding": "identity" })).text();
      const files = [...html.matchAll(/(?:src|<link rel="stylesheet" href)="(?!data:)([^"]+)"/g)].map(
        ([, url = ""]) => new URL(url, `http://petstore.test${path}`).pathname,
      );
      expect(files).toHaveLength(2);
      let bytes = 0;
      for (const each of [path, ...files]) {
        const response = await get(each, { ...HTML, "Accept-Encoding": "br" });
        expect(response.headers.get("content-encoding")).toBe("br");
        bytes += await sizeOf(response);
      }
      expect(bytes).toBeGreaterThan(5_000);
      expect(bytes).toBeLessThanOrEqual(30_000);
    }
  },
  TIMEOUT_MS,
);

test("every guide is Markdown at its path with .md, with the same code and links that lead somewhere", async () => {
  const list = await (await get("/llms.txt")).text();
  expect(list).toStartWith("# Petstore API\n\n> ");
  expect(list.match(/^- \[[A-Z].*\.md\): \S/gm)).toHaveLength(Object.keys(GUIDE_SOURCES).length);
  const links = (text: string) => Array.from(text.matchAll(/\]\(([^)]+)\)/g), ([, href = ""]) => href);
  const files = links(list).filter((href) => href.endsWith(".md"));
  expect(files.length).toBe(Object.keys(GUIDE_SOURCES).length);
  const found = new Map<string, string>();
  for (const file of files) {
    const response = await get(new URL(file).pathname);
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/plain; charset=utf-8",
    ]);
    const text = await response.text();
    found.set(file, text);
    expect(text).toMatch(/^# \w/);
    expect(text).not.toContain("<!--");
    expect(text).not.toContain("example=");

    const page = new URL(file).pathname.replace(/(?:\/quickstart)?\.md$/, "");
    const html = await (await get(page, { ...HTML, "Accept-Encoding": "identity" })).text();
    const [, alternate = ""] = /type="text\/markdown" href="([^"]+)"/.exec(html) ?? [];
    expect(new URL(alternate, new URL(page, file)).href).toBe(file);
    for (const [, code = ""] of text.matchAll(/^```\w+\n(.*?)\s*^```$/gms))
      expect(textOf(html)).toContain(textOf(Bun.escapeHTML(code)));
  }
  for (const [file, text] of found)
    for (const href of links(text.replace(/^```.*?^```$/gms, ""))) {
      const url = new URL(href, file);
      if (url.host !== new URL(file).host) continue;
      const [target = ""] = url.href.split("#");
      expect([200, 302]).toContain((await get(url.pathname)).status);
      const headings = Array.from((found.get(target) ?? "").matchAll(/^#+ (.*)$/gm), ([, title = ""]) =>
        anchorOf(title),
      );
      if (url.hash !== "" && found.has(target)) expect(headings).toContain(url.hash.slice(1));
    }
});

test("scripts, style sheets and the search index are kept forever; their names change with their content", async () => {
  const html = await (await get("/docs", { "Accept-Encoding": "identity" })).text();
  const names = [...html.matchAll(/="(docs\/assets\/[^"]+)"/g)].map(([, name = ""]) => name);
  expect(names).toHaveLength(3);
  for (const name of names) {
    expect(name).toMatch(/-[0-9a-f]{16}\.(?:js|css|json)$/);
    const response = await get(`/${name}`);
    expect(response.headers.get("cache-control")).toContain("max-age=31536000");
    expect((await get(`/${name.replace(/[0-9a-f]{16}/, "0".repeat(16))}`)).status).toBe(404);
  }
});

test("the policy allows scripts and styles of this origin, the inline script by its hash, and nothing else", async () => {
  const response = await get("/docs/rate-limits", { "Accept-Encoding": "identity" });
  const [, script = ""] = /<script>(.*?)<\/script>/s.exec(await response.text()) ?? [];
  const hash = createHash("sha256").update(script).digest("base64");
  expect(response.headers.get("content-security-policy")).toBe(
    `default-src 'none'; script-src 'self' 'sha256-${hash}'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
  expect(response.headers.get("referrer-policy")).toBe("no-referrer");
});

test("an unknown page is a page for browsers and an error for programs, both 404", async () => {
  const page = await get("/docs/nothing", HTML);
  expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  expect(await page.text()).toContain("There is no such page");
  const error = await get("/docs/nothing");
  expect([error.status, await error.json()]).toEqual([
    404,
    { code: "not_found", message: "No such path. The paths of the API are listed at /docs.", status: 404 },
  ]);
});

test("a script that does not exist is an error also for browsers, and only the first page depends on Accept", async () => {
  const { status, headers } = await get("/docs/assets/docs-0.js", HTML);
  expect([status, headers.get("content-type")]).toEqual([404, "application/json"]);
  const vary = async (path: string) => (await get(path, HTML)).headers.get("vary");
  expect([await vary("/"), await vary("/docs")]).toEqual(["Accept, Accept-Encoding", "Accept-Encoding"]);
});

test("the client library is an archive that every tar can read: whole blocks, owned by nobody, of 1970", async () => {
  const archive = Buffer.from(Bun.gunzipSync(await (await get(`/client-${version}.tgz`)).arrayBuffer()));
  const names: string[] = [];
  let at = 0;
  while (archive[at] !== 0) {
    const header = archive.subarray(at, at + 512);
    const text = header.toString("latin1");
    names.push(text.slice(0, text.indexOf("\0")));
    const size = text.slice(124, 135);
    expect(text.slice(100, 148)).toBe(`0000644\0${"0000000\0".repeat(2)}${size} 00000000000 `);
    const sum = header.fill(" ", 148, 156).reduce((total, byte) => total + byte, 0);
    expect(text.slice(148, 156)).toBe(`${sum.toString(8).padStart(6, "0")}\0 `);
    expect(text.slice(156)).toBe(`0${"\0".repeat(100)}ustar\x0000`.padEnd(356, "\0"));
    const end = at + 512 + Number.parseInt(size, 8);
    at = Math.ceil(end / 512) * 512;
    expect(archive.subarray(end, at).every((byte) => byte === 0)).toBe(true);
  }
  expect(names).toContain("package/package.json");
  expect(archive.subarray(at)).toEqual(Buffer.alloc(1_024));
});

test("the page for an unknown path is small, however deep the path is", async () => {
  const page = await get(`/docs${"/a".repeat(97)}`, { ...HTML, "Accept-Encoding": "identity" });
  expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  expect(await sizeOf(page)).toBeLessThanOrEqual(20_000);
  const deeper = await get(`/docs${"/a".repeat(98)}`, HTML);
  expect([deeper.status, deeper.headers.get("content-type")]).toEqual([404, "application/json"]);
});

test("a slash at the end and paths that people guess lead to the page that they mean", async () => {
  for (const [path, location] of [
    ["/docs/", "../docs"],
    ["/docs/errors/", "../errors"],
    ["/docs/quickstart", "../docs"],
    ["/docs/quickstart/", "../../docs"],
    ["/docs/reference", "reference/listPets"],
    ["/docs/reference/", "listPets"],
  ] as const) {
    const response = await get(path, HTML);
    expect([response.status, response.headers.get("location")]).toEqual([302, location]);
    const target = new URL(location, `http://petstore.test${path}`).pathname;
    expect((await get(target, HTML)).status).toBe(200);
  }
});
