import { expect, test } from "bun:test";
import { DOCUMENTED_DEFAULTS } from "../../src/cli/documented-defaults.ts";
import { SearchIndex } from "../../src/docs-site/browser/search-matches.ts";
import { renderSite } from "../../src/docs-site/render-site.ts";

const { searchEntries } = await renderSite({
  settings: DOCUMENTED_DEFAULTS,
  scriptPath: "/docs/assets/docs-0.js",
  stylePath: "/docs/assets/docs-0.css",
});
const index = new SearchIndex(searchEntries);

/** The URLs of the first results, without the directory of all pages. */
function found(query: string): string[] {
  const { matches } = index.search(query);
  return matches.slice(0, 3).map(({ entry: [, , url] }) => url.replace(/^docs\/?(?:reference\/)?/, ""));
}

/** What is the first result. */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  "": ["quickstart", "quickstrat", "tutorial"],
  "#from-a-terminal": ["from a terminal"],
  api: ["overview"],
  "api#operations": ["HEAD", "OPTIONS", "trailing slash"],
  "api#order": ["timezone"],
  "api#pet": ["pet status", "filter by status", "category"],
  "api#values": ["name length", "emoji", "null status", "unknown fields"],
  "api#limits": ["keep-alive", "max body size", "413", "idle connection", "pipelining"],
  "api#conditional-requests": ["ETag", "caching", "two people change the same order", "concurrent updates"],
  "api#environments": ["environments", "staging", "sandbox", "test mode"],
  "api#not-supported":
    "webhooks,websocket,gzip,compression,sort,sorting,HTTP/2,CORS,batch,delete,delete pet,delete order,search by name".split(
      ",",
    ),
  authentication: ["login", "oauth", "bearer token", "authentification"],
  "authentication#get-an-api-key": ["how do I get a key", "rotate key", "lost key", "mobile app"],
  pagination: ["pagination", "pagintaion", "next page", "page size", "cursor expired", "offset"],
  "pagination#pets-by-their-identifiers": ["fetch several pets", "bulk"],
  "rate-limits#plans": ["plans", "pricing", "tiers"],
  "rate-limits#rate-limit-headers": ["X-RateLimit-Reset", "X-RateLimit-Remaining"],
  "rate-limits#handling-429": ["429", "too many requests", "exponential backoff", "jitter"],
  "rate-limits#bans": ["bans", "unban", "blocked"],
  idempotency: ["idempotency key", "idempotencey", "duplicates"],
  "idempotency#retrying-a-post": ["Idempotent-Replayed"],
  errors: ["exceptions"],
  "errors#error-codes": ["401"],
  "errors#request-ids": ["request id"],
  "errors#retries": ["retry", "timeouts"],
  integers: ["integers", "precison"],
  "client-library#integers-are-bigints": ["bigint"],
  "integers#where-digits-are-lost": ["JSON.parse", "jq"],
  deprecation: ["sunset"],
  compatibility: ["versioning"],
  "compatibility#what-may-change-without-notice": ["breaking change"],
  "client-library": ["npm install", "sdk"],
  "client-library#methods": ["AbortController"],
  "client-library#retries-and-deadlines": ["deadline"],
  "generated-clients": ["generated clients", "postman", "swagger"],
  changelog: ["changlog", "release notes"],
  listPets: ["listpets", "GET /pets"],
  createPet: ["createPet", "create a pet"],
  getPet: ["http://127.0.0.1:8080/v1/pets/7"],
  getOrder: ["GET /v1/store/orders/12"],
  listOrders: ["listorders"],
  placeOrder: ["place an order", "how to create an order"],
  updateOrder: ["patch /store/orders/{orderId}", "cancel an order", "update order"],
  "schemas#neworder": ["NewOrder"],
  "errors#order_closed": ["order_closed"],
  "errors#rate_limited": ["rate_limitted"],
  "errors#read_only_key": ["readonly"],
};

/** What is among the first three. */
const AMONG_FIRST: readonly (readonly [query: string, url: string])[] = [
  ["ECONNRESET", "errors#retries"],
  ["connection refused", "api#limits"],
  ["update pet", "api#not-supported"],
  ["python", "#order-it"],
  ["ban", "rate-limits#bans"],
  ["ETag", "api#conditional-requests"],
  ["X-RateLimit-Remaining", "listPets#response-headers"],
  ["Location", "createPet#response-headers"],
  ["Idempotent-Replayed", "placeOrder#response-headers"],
  ["X-Request-Id", "listPets#response-headers"],
  ["sort", "pagination"],
  ["browser", "client-library#browsers"],
  ["403", "errors#error-codes"],
];

/** What somebody new to the API asks in plain words, and the page that answers it. It is the first result. */
const QUESTIONS: Readonly<Record<string, string>> = {
  "get an api key": "authentication",
  "default status": "api",
  timeout: "errors",
  "breaking changes": "compatibility",
  "filter by category": "api",
  events: "api",
  clock: "going-to-production",
  "go live checklist": "going-to-production",
  "what can change without notice": "compatibility",
  "environment variable": "going-to-production",
  "get all pets": "pagination",
  "how many requests per minute": "rate-limits",
  "my key is blocked": "rate-limits",
  "retry a post": "idempotency",
  "new error codes": "compatibility",
  "server upgrade": "going-to-production",
  "several workers": "rate-limits",
  "large numbers": "integers",
  commonjs: "client-library",
  "two people change the same order": "api",
};

test.each(Object.entries(QUESTIONS))("%s is answered by %s", (question, page) => {
  expect(found(question)[0]?.split("#")[0]).toBe(page);
});

const firstCases = Object.entries(FIRST).flatMap(([url, queries]) =>
  queries.map((query) => [query, url] as const),
);

test.each(firstCases)("%s leads to %s", (query, url) => {
  expect(found(query)[0]).toBe(url);
});

test.each(AMONG_FIRST)("%s leads to %s, among others", (query, url) => {
  expect(found(query)).toContain(url);
});

/** Words that somebody may have meant, some of them close to words of the documentation. */
const WORDS =
  "batch pricing sorting event users model stats score price prices stock refund trial coupon stream graphql grpc photo " +
  "image owner breed vaccine state country currency invoice search export import report profile account";

test.each(WORDS.split(" "))("%s is not corrected", (word) => {
  expect(index.search(word).corrections).toEqual([]);
});

test("a mistyped word is corrected", () => {
  for (const [typed, meant] of [
    ["pagintaion", "pagination"],
    ["precison", "precision"],
    ["changlog", "changelog"],
  ] as const)
    expect(index.search(typed).corrections).toEqual([meant]);
});
