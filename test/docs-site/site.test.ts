import { describe, expect, test } from "bun:test";
import { DOCUMENTED_DEFAULTS } from "../../src/cli/documented-defaults.ts";
import { PROTOCOL_ERRORS } from "../../src/api/protocol-errors.ts";
import type { DocumentedSettings } from "../../src/public/documented-settings.ts";
import { settingBlocks } from "../../src/docs-site/guide-pages.ts";
import { renderSite } from "../../src/docs-site/render-site.ts";
import { ERRORS } from "../../src/petstore/errors.ts";
import { NOT_MODIFIED, SCHEMAS } from "../../src/petstore/openapi/document.ts";
import { operationErrors, OPERATIONS, type PetstoreOperation } from "../../src/petstore/operations.ts";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import { NewPet } from "../../src/domain/pets-and-orders.ts";

const siteWith = (settings: DocumentedSettings) =>
  renderSite({
    settings,
    scriptPath: "/docs/assets/docs-0.js",
    stylePath: "/docs/assets/docs-0.css",
  });

const { pages, markdown, notFound, searchEntries } = await siteWith(DOCUMENTED_DEFAULTS);
const pageAt = (path: string) => pages.get(path) ?? "";
const pathsOf = (html: string, links: RegExp, path: string) =>
  [...html.matchAll(links)].map(([, href = ""]) => new URL(href, `http://petstore.test${path}`).pathname);
const idsOf = (html: string) => [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id);
const hrefsOf = (html: string) => [...html.matchAll(/ href="([^"]*)"/g)].map(([, href = ""]) => href);

/** What is no page. */
const FILES = /^\/(?:openapi\.(?:json|yaml)|docs\/assets\/.+)$/;

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

  /** What stands above the description of each field. */
  const fieldsOf = (path: string) =>
    [...pageAt(path).matchAll(/<div id="([^"]+)"><dt>.*?<\/code><\/a>(.*?)<\/dt>/gs)].map(
      ([, id = "", type = ""]) => `${id}${type.replace(/ ?<span[^>]*>/g, " ").replace(/<[^>]+>/g, "")}`,
    );

  test("says of each field whether it is required or may be missing, and what it can be", () => {
    expect(fieldsOf("/docs/reference/listPets")).toEqual([
      "listPets-limit integer, 1 to 100, default 20",
      "listPets-categoryId integer (int64)",
      "listPets-status one of available, pending, sold",
      "listPets-id 1 to 100 integers (int64), separated by commas",
      "listPets-cursor string",
      "listPets-If-None-Match string",
      "response-id integer (int64)",
      "response-name string, 1 to 1,024 characters",
      "response-categoryId integer (int64)",
      "response-status optional one of available, pending, sold",
      "header-ETag string",
      "header-Link optional string",
      "header-X-Request-Id string, 1 to 128 characters",
      "header-Cache-Control private, no-cache",
      "header-X-RateLimit-Limit integer",
      "header-X-RateLimit-Remaining integer",
      "header-X-RateLimit-Reset integer",
    ]);
    const some = /^createPet-|Replayed|^NewPet|^OrderUpdate/;
    expect(fieldsOf("/docs/reference/createPet").filter((field) => some.test(field))).toEqual([
      "createPet-name required string, 1 to 1,024 characters",
      "createPet-categoryId required integer (int64)",
      "createPet-status one of available, pending, sold",
      "createPet-Idempotency-Key string",
      "header-Idempotent-Replayed optional true",
    ]);
    expect(fieldsOf("/docs/reference/schemas").filter((field) => some.test(field))).toEqual([
      "NewPet-name required string, 1 to 1,024 characters",
      "NewPet-categoryId required integer (int64)",
      "NewPet-status one of available, pending, sold",
      "OrderUpdate-status required one of completed, cancelled",
    ]);
  });

  test("has a type of every field, and its description as sentences", () => {
    const html = pageAt("/docs/reference/getKey");
    expect(html).toContain('<span class="type">string (date-time) or null</span>');
    expect(html).toContain("When the key expires; null for never.");
    expect(html).toContain('<span class="type"><a href="schemas#ratelimitwindow">RateLimitWindow</a></span>');
    for (const page of pages.values()) {
      expect(page).not.toMatch(/class="type">(?:undefined|object|one of <code>[^<]*<\/code>)</);
      for (const [, description] of page.matchAll(/<dd><span id="[^"]+-description">(.+?)<\/span><\/dd>/g))
        expect(description).toMatch(/[^.][.!?]$/);
    }
  });

  test("has the outline of a request and its responses, by their statuses", () => {
    const html = pageAt("/docs/reference/updateOrder");
    const [, main = ""] = html.split("<main");
    const headings = [...main.matchAll(/<h[123][^>]*>(.*?)<\/h[123]>/g)];
    expect(headings.map(([, heading = ""]) => heading.replace(/<[^>]+>/g, ""))).toEqual([
      "Complete or cancel an order",
      "Request",
      "Path parameters",
      "Body",
      "Header fields",
      "Responses",
      "Response body",
      "Response headers",
    ]);
    const rows = (id: string) => rowsOf(pageAt(`/docs/reference/${id}`)).filter((row) => row.length > 0);
    const statuses = rows("updateOrder").map(([status]) => status);
    expect(statuses).toEqual(statuses.toSorted());
    expect(rows("getOrder").slice(0, 3)).toEqual([
      ["200", "", "The order"],
      ["304", "", NOT_MODIFIED.replaceAll("`", "")],
      ["401", "missing_api_key", ERRORS.missing_api_key.meaning],
    ]);
    expect(statuses).not.toContain("304");
    expect(main).toContain('<span class="operation-id">updateOrder</span>');
    expect(main).toMatch(/<div class="code-title">Response 200<\/div><pre[^>]*><code>{\n  <span/);
    expect(main.replace(/<[^>]+>/g, "")).toContain("One Order:");
    expect(pageAt("/docs/reference/listOrders").replace(/<[^>]+>/g, "")).toContain("An array of Order:");
  });

  test("says how to get a key of the environment", () => {
    const helpIn = (html = "") => /<details class="key-help">.*?<\/details>/s.exec(html)?.[0];
    const path = "/docs/reference/listPets";
    const help = helpIn(pageAt(path))?.replace(/<[^>]+>/g, "");
    expect(help).toEndWith('npx petstore keys create --name "my key" --plan free');
    expect(helpIn(staging.get(path))?.replace(/<[^>]+>/g, "")).toEndWith("--plan free --env staging");
  });

  test("has each error code and each schema as a link target", () => {
    const codes = Object.keys({ ...ERRORS, ...PROTOCOL_ERRORS });
    const errors = pageAt("/docs/reference/errors");
    expect(idsOf(errors)).toEqual(expect.arrayContaining(codes));
    // An index comes first.
    const [index] = /<table.*?(?=<h2 id)/s.exec(errors) ?? [];
    for (const code of codes) expect(index).toContain(`href="errors#${code}"`);
    const statuses = rowsOf(errors).flatMap(([status = ""]) => status);
    expect(statuses.filter(Boolean)).toEqual(statuses.filter(Boolean).toSorted());
    for (const [code, where] of [
      ["rate_limited", "On every operation."],
      ["read_only_key", "On createPet, placeOrder, updateOrder."],
      ["method_not_allowed", "On requests that match no operation."],
    ] as const) {
      const [, section = ""] = errors.split(`<h2 id="${code}"`);
      expect(section.split("<h2")[0]?.replace(/<[^>]+>/g, "")).toContain(where);
    }
    const schemas = Object.keys(SCHEMAS).map((name) => name.toLowerCase());
    expect(idsOf(pageAt("/docs/reference/schemas"))).toEqual(expect.arrayContaining(schemas));
    const status = pageAt("/docs/reference/schemas").split('<h2 id="petstatus"')[1]?.split("<h2")[0] ?? "";
    expect(status.replace(/<[^>]+>/g, "")).toContain("One of available, pending, sold.");
    expect(status).not.toContain("<dl");
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
    const current = [...html.matchAll(/<a href="([^"]*)" aria-current="page">/g)].map(
      ([, href = ""]) => href,
    );
    const own = current.map((href) => new URL(href, `http://petstore.test${path}`).pathname);
    expect(own).toEqual(path === "/" ? [] : [path]);
    return sections.length;
  });
  expect(Math.max(...counts)).toBeGreaterThan(12);
});

test("the pages before and after a page are those of the sidebar", () => {
  const [sidebar = ""] = pageAt("/docs").split("<h2>OpenAPI");
  const order = pathsOf(sidebar.slice(sidebar.indexOf("<nav")), / href="([^"#]*)"/g, "/docs");
  expect(order.toSorted()).toEqual([...pages.keys()].filter((path) => path !== "/").toSorted());
  for (const [path, html] of pages) {
    const [, pager = ""] = html.split('<nav class="pager"');
    const index = order.indexOf(path);
    const [before, after] = index === -1 ? [] : [order[index - 1], order[index + 1]];
    expect(pathsOf(pager, / rel="prev" href="([^"]*)"/g, path)).toEqual(before === undefined ? [] : [before]);
    expect(pathsOf(pager, / rel="next" href="([^"]*)"/g, path)).toEqual(after === undefined ? [] : [after]);
  }
});

test("the quickstart has numbered sections, and after its introduction a form for the first request", () => {
  const numbered = [...pages].filter(([, html]) => /<main id="main" class="[^"]*numbered/.test(html));
  expect(numbered.map(([path]) => path)).toEqual(["/docs"]);
  const headings = [...pageAt("/docs").matchAll(/<h[12] id="([^"]*)"/g)].map(([, id]) => id);
  expect(pageAt("/")).toContain('<fieldset class="example">');
  expect(headings.slice(0, 2)).toEqual(["quickstart", "your-first-request"]);
  expect(pageAt("/docs")).toMatch(/Add a pet:.*<section data-try-it="createPet"/s);
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
    const document = "https://staging.example.com/openapi.json";
    expect(hrefsOf(staging.get("/docs/generated-clients") ?? "")).toContain(document);
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

test("a server without a grace, a longer ban or a limit of connections says so", () => {
  const ban = { strikes: 1, graceMs: 0, lengthMs: 60_000, maxLengthMs: 60_000 };
  const policy = { current: { ...DEFAULT_POLICY, ban } };
  const blocks = settingBlocks({ ...DOCUMENTED_DEFAULTS, policy, maxConnectionsPerAddress: 0 });
  expect(blocks["ban-rules"]).toMatch(/^- Every request that is rejected after the first 429 is a strike\. /);
  expect(blocks["ban-rules"]).toEndWith(
    "- 1 strike bans the key for 1 minute. The last of them already gets `key_banned`.",
  );
  expect(blocks["connection-limit"]).toBe("The number of connections from one IP address is not limited.");
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
