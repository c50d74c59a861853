import { describe, expect, test } from "bun:test";
import { DOCUMENTED_DEFAULTS } from "../../src/cli/documented-defaults.ts";
import { PROTOCOL_ERRORS } from "../../src/api/protocol-errors.ts";
import type { DocumentedSettings } from "../../src/public/documented-settings.ts";
import { renderSite } from "../../src/docs-site/render-site.ts";
import { ERRORS } from "../../src/petstore/errors.ts";
import { SCHEMAS } from "../../src/petstore/openapi/document.ts";
import { operationErrors, OPERATIONS, type PetstoreOperation } from "../../src/petstore/operations.ts";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import { NewPet } from "../../src/domain/pets-and-orders.ts";

const siteWith = (settings: DocumentedSettings) =>
  renderSite({
    settings,
    scriptPath: "/docs/assets/docs-0.js",
    stylePath: "/docs/assets/docs-0.css",
  });

const { pages, markdown, notFound, searchEntries, feed } = await siteWith(DOCUMENTED_DEFAULTS);
const pageAt = (path: string) => pages.get(path) ?? "";
const idsOf = (html: string) => [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id);
const hrefsOf = (html: string) => [...html.matchAll(/ href="([^"]*)"/g)].map(([, href = ""]) => href);

/** What is no page. */
const FILES = /^\/(?:openapi\.(?:json|yaml)|postman_collection\.json|docs\/(?:assets\/.+|changelog\.atom))$/;

describe.each([...pages])("%s", (path, html) => {
  test("every link leads to a page of the site and to an id on it", () => {
    const broken = hrefsOf(html).filter((href) => {
      if (/^(?:https?:|data:)/.test(href)) return false;
      const { pathname, hash } = new URL(href, `http://petstore.test${path}`);
      if (FILES.test(pathname) || markdown.has(pathname)) return false;
      const target = pages.get(pathname);
      return target === undefined || (hash !== "" && !idsOf(target).includes(hash.slice(1)));
    });
    expect(broken).toEqual([]);
  });

  test("links are relative, so that the site works under a prefix", () => {
    const absolute = [...html.matchAll(/ (?:href|src)="(\/[^"]*)"/g)];
    expect(absolute.map(([, url]) => url)).toEqual([]);
  });

  test("its ids are unique, it has one h1, and no script or style is inline without a hash", () => {
    const ids = idsOf(html);
    expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
    expect(html.match(/<h1/g)).toHaveLength(1);
    expect(html.match(/<(?:script|style)>/g)).toEqual(["<script>"]);
    expect(html).not.toMatch(/\son\w+=|\sstyle="|javascript:/);
  });
});

describe("the reference", () => {
  test("has every parameter, body field, status and error code of each operation", () => {
    for (const [id, operation] of Object.entries<PetstoreOperation>(OPERATIONS)) {
      const html = pageAt(`/docs/reference/${id}`);
      const names = [...Object.keys(operation.query ?? {}), ...(operation.body?.names ?? [])];
      if (operation.identifier) names.push(operation.identifier.name);
      if (operation.acceptsIdempotencyKey) names.push("Idempotency-Key");
      expect(idsOf(html)).toEqual(expect.arrayContaining(names.map((name) => `${id}-${name}`)));
      const codes = hrefsOf(html).flatMap((href) => (href.startsWith("errors#") ? [href.slice(7)] : []));
      expect(codes).toEqual(
        expect.arrayContaining([...operationErrors(operation), "rate_limited", "missing_api_key"]),
      );
      expect(html).toContain(`<td>${operation.success.status}</td>`);
      expect(html).toContain(`<section data-try-it="${id}" id="try-it-${id}">`);
      expect(html).toContain('<script type="application/json" id="try-it-data">');
    }
  });

  test("has the type of a field that may be null, and a link to that of an object", () => {
    const html = pageAt("/docs/reference/getKey");
    expect(html).toContain('<span class="type">string (date-time) or null</span>');
    expect(html).toContain("When the key expires; null for never.");
    expect(html).toContain('<span class="type"><a href="schemas#ratelimitwindow">RateLimitWindow</a></span>');
    for (const page of pages.values())
      expect(page).not.toMatch(/class="type">(?:undefined|object|one of <code>[^<]*<\/code>)</);
  });

  test("has each error code and each schema as a link target", () => {
    const codes = Object.keys({ ...ERRORS, ...PROTOCOL_ERRORS });
    const errors = pageAt("/docs/reference/errors");
    expect(idsOf(errors)).toEqual(expect.arrayContaining(codes));
    // An index comes first.
    const [index] = /<table.*?(?=<h2 id)/s.exec(errors) ?? [];
    for (const code of codes) expect(index).toContain(`href="errors#${code}"`);
    const schemas = Object.keys(SCHEMAS).map((name) => name.toLowerCase());
    expect(idsOf(pageAt("/docs/reference/schemas"))).toEqual(expect.arrayContaining(schemas));
  });

  test("getPet is marked as deprecated, with both dates, in the sidebar too", () => {
    const html = pageAt("/docs/reference/getPet");
    expect(html).toContain("since 14 November 2026. It will be removed on 5 December 2030.");
    expect(html).toContain('<s>Fetch one pet</s></span><span class="visually-hidden">, deprecated</span>');
    expect(html).toContain('<blockquote class="callout" data-meaning="deprecated">');
  });

  test("examples keep all digits and come in four languages", () => {
    const html = pageAt("/docs/reference/listPets");
    expect(html).toContain("9007199254740993");
    for (const language of ["curl", "typescript", "fetch", "python"])
      expect(html).toContain(`<div class="code" data-language="${language}">`);
  });

  test("data for try-it has the public address, and cannot end its element", () => {
    const [, json = ""] = /id="try-it-data">(.*?)<\/script>/s.exec(pageAt("/docs/reference/createPet")) ?? [];
    expect(json).not.toContain("<");
    const { operation, baseUrl } = JSON.parse(json);
    // Programs that people copy have the public address, wherever the page is open.
    expect(baseUrl).toBe(DOCUMENTED_DEFAULTS.baseUrl);
    expect(operation.fields.map(({ name }: { name: string }) => name)).toEqual([
      ...NewPet.names,
      "Idempotency-Key",
    ]);
  });
});

test("the sidebar has the sections of a page, without those below them, unless there are more than twelve", () => {
  const counts = [...pages].map(([path, html]) => {
    const [, list = ""] = /<ul class="sections">(.*?)<\/ul>/.exec(html) ?? [];
    const [, content = ""] = html.split("<main");
    const sections = [...content.matchAll(/<h2[^>]* id="([^"]+)"/g)].map(([, id = ""]) => `#${id}`);
    expect([path, hrefsOf(list)]).toEqual([path, sections.length > 12 ? [] : sections]);
    return sections.length;
  });
  expect(Math.max(...counts)).toBeGreaterThan(12);
});

test("examples have at most 72 columns, so that they are not cut off", () => {
  const examples = [...pages].flatMap(([path, html]) =>
    [...html.matchAll(/data-language="\w+">.*?<code>(?<code>.*?)<\/code>/gs)].map(
      ({ groups }) => [path, groups?.["code"] ?? ""] as const,
    ),
  );
  expect(examples.length).toBeGreaterThan(50);
  const long = examples.flatMap(([path, code]) =>
    code
      .replace(/<[^>]+>/g, "")
      .replace(/&[^;]+;/g, "&")
      .split("\n")
      .filter((line) => line.length > 72)
      .map((line) => `${path} ${line}`),
  );
  expect(long).toEqual([]);
});

const own = "https://staging.example.com/v1";
const production = "https://api.example.com/v1";
const { pages: staging } = await siteWith({
  environment: "staging",
  baseUrl: own,
  otherEnvironmentUrl: production,
  policy: {
    current: {
      ...DEFAULT_POLICY,
      plans: {
        free: { perMinute: 7, perDay: 70 },
        pro: { perMinute: 8, perDay: 8_000 },
        business: { perMinute: 9, perDay: 90 },
        anonymous: { perMinute: 10, perDay: 100 },
      },
      ban: { strikes: 4, graceMs: 2_000, lengthMs: 90_000, maxLengthMs: 360_000 },
    },
  },
  maxConnectionsPerAddress: 12,
});

describe("a staging server with its own settings", () => {
  const textAt = (path: string) =>
    (staging.get(path) ?? "")
      .replace(/<[^>]+>/g, "")
      .replace(/&lt;/g, "<")
      .replace(/&gt;/g, ">");

  test("shows its URL, its keys, its plans and its ban rules", () => {
    expect(textAt("/docs")).toContain(`export PETSTORE_KEY=pet_test_…\nAPI=${own}`);
    expect(textAt("/docs")).toContain(`Location: ${own}/pets?id=1\nX-RateLimit-Limit: 7\n`);
    expect(textAt("/docs/pagination")).toContain(`Link: <${own}/pets?limit=20`);
    expect(textAt("/docs/deprecation")).toContain("<https://staging.example.com/docs/deprecation>");
    const rows = rowsOf(staging.get("/docs/rate-limits") ?? "");
    expect(rows).toContainEqual(["Free", "7", "70"]);
    expect(rows).toContainEqual(["Pro", "8", "8,000"]);
    expect(rows).toContainEqual(["No valid key", "10", "100"]);
    expect(textAt("/docs/rate-limits")).toContain("Requests rejected within 2 seconds of the first 429");
    expect(textAt("/docs/rate-limits")).toContain("4 strikes ban the key for 90 seconds.");
    expect(textAt("/docs/api")).toContain("can have 12 open connections.");
    expect(textAt("/docs/reference/createPet")).toContain(`${own}/pets`);
    const collection = "https://staging.example.com/postman_collection.json";
    expect(hrefsOf(staging.get("/docs/generated-clients") ?? "")).toContain(collection);
  });

  test("shows no default on any page", () => {
    for (const html of staging.values()) {
      expect(html).not.toMatch(/127\.0\.0\.1:808[01]/);
      expect(html).not.toContain("pet_live_YOUR_KEY");
      expect(rowsOf(html)).not.toContainEqual(["Free", "60", "1,000"]);
    }
  });

  test("the menu names the other environment and its documentation; without an address it says so", () => {
    expect(staging.get("/docs")).toContain(
      `<a href="https://api.example.com/docs">Documentation of production</a>`,
    );
    expect(pageAt("/docs")).toContain("Ask the operator for its address.");
    expect(rowsOf(pageAt("/docs/api"))).toContainEqual(["Staging", "ask the operator", "pet_test_"]);
    expect(rowsOf(staging.get("/docs/api") ?? "")).toContainEqual(["Production", production, "pet_live_"]);
  });
});

/** The text of the cells of every table. */
function rowsOf(html: string): string[][] {
  return [...html.matchAll(/<tr>([\s\S]*?)<\/tr>/g)].map(([, row = ""]) =>
    [...row.matchAll(/<td[^>]*>([\s\S]*?)<\/td>/g)].map(([, cell = ""]) => cell.replace(/<[^>]+>/g, "")),
  );
}

test("the changelog has the changes for clients, not those for operators", () => {
  const html = pageAt("/docs/changelog");
  expect(html).toContain("@petstore/client");
  expect(html).not.toMatch(/For operators|For clients/);
  expect(html).not.toContain("petstore doctor");
  expect(html).not.toContain("Upgrading");
  for (const release of html.slice(html.indexOf("<main")).split("<h2").slice(1))
    expect(release.match(/<li>/g)?.length ?? 0).toBeLessThanOrEqual(8);
});

test("the feed has an entry for each release, and the changelog leads to it", () => {
  const valuesOf = (name: string) =>
    [...feed.matchAll(new RegExp(`<${name}[^>]*>(.*?)</${name}>`, "gs"))].map(([, value = ""]) => value);
  const releases = [...pageAt("/docs/changelog").matchAll(/<h2 id="([^"]+-\d{4}-\d\d-\d\d)"/g)];
  expect(releases.length).toBeGreaterThan(2);
  const url = (path: string) => DOCUMENTED_DEFAULTS.baseUrl.replace("/v1", path);
  expect(valuesOf("id")).toEqual([
    url("/docs/changelog.atom"),
    ...releases.map(([, id]) => url(`/docs/changelog#${id}`)),
  ]);
  // That of the feed is that of its newest entry.
  const [newest, ...times] = valuesOf("updated");
  expect(newest).toBe(times.toSorted().at(-1));
  for (const time of times) expect(new Date(time).getTime()).toBeGreaterThan(0);
  for (const html of valuesOf("content")) expect(html).toStartWith("&lt;");
  const links = hrefsOf(pageAt("/docs/changelog")).filter((href) => href === "changelog.atom");
  expect(links).toHaveLength(2);
});

test("a page that does not exist has links that work at any depth", () => {
  const html = notFound("/docs/a/b/c");
  expect(html).toContain('<a href="../../../docs">Quickstart</a>');
  expect(html).not.toContain("/a/b");
});

describe("the search index", () => {
  test("has each page and section once, with at most 2,000 characters of text each", () => {
    const urls = searchEntries.map(([, , url]) => url);
    expect(new Set(urls).size).toBe(urls.length);
    expect(urls).toContain("docs/rate-limits#handling-429");
    expect(urls).toContain("docs/reference/errors#rate_limited");
    expect(Math.max(...searchEntries.map(([, , , text]) => text.length))).toBeLessThanOrEqual(2000);
  });

  test("every URL of it is a page with that id", () => {
    const broken = searchEntries.filter(([, , url]) => {
      const [path, id] = String(url).split("#");
      const html = pages.get(`/${path}`);
      return html === undefined || (id !== undefined && !idsOf(html).includes(id));
    });
    expect(broken).toEqual([]);
  });
});

test("a bundle without its style sheet is an error", () => {
  const build = ["src/browser-bundle/build.ts", "src/docs-site/browser/main.ts"];
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...build], { stderr: "pipe" });
  expect(exitCode).toBe(1);
  expect(stderr.toString()).toContain("expected a script and a style sheet, but the number of files is 1");
});
