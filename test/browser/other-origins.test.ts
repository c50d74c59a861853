import { afterAll, expect } from "bun:test";
import { loadClientFiles } from "../../src/browser-bundle/bundle.ts";
import { bearer } from "../bearer.ts";
import { startService } from "../service.ts";
import { startBrowser, test } from "./browser.ts";

const CLIENT = await loadClientFiles();
const PAGE = '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>shop</title>';

const PROGRAM = `
import { NotFoundError, Petstore } from "/client/index.js";
export async function run({ key, baseUrl }, name) {
  const petstore = new Petstore({ key, baseUrl });
  const { data, response } = await petstore.pets
    .create({ name, categoryId: 9007199254740993n, status: "sold" })
    .withResponse();
  await Promise.all(Array.from({ length: 5 }, () => petstore.pets.create({ name, categoryId: 1, status: "sold" })));
  const again = { idempotencyKey: name };
  await petstore.pets.create({ name, categoryId: 1, status: "sold" }, again);
  const replay = await petstore.pets.create({ name, categoryId: 1, status: "sold" }, again).withResponse();
  let listed = 0;
  for await (const pet of petstore.pets.list({ status: "sold", limit: 2 })) if (pet.name === name) listed++;
  const error = await petstore.orders.get(999).catch((error) => error);
  return {
    categoryId: String(data.categoryId),
    hasRequestId: response.requestId !== undefined,
    limit: response.rateLimit?.limit,
    listed,
    replayed: replay.response.replayed,
    isById: (await petstore.pets.byIds([data.id])).length === 1,
    isNotFound: error instanceof NotFoundError,
  };
}`;

const WORKER = `
import { run } from "/program.js";
addEventListener("message", ({ data }) => run(data, "worker").then(postMessage));`;

const EXPECTED = {
  categoryId: "9007199254740993",
  hasRequestId: true,
  limit: 1_000_000_000,
  listed: 7,
  replayed: true,
  isById: true,
  isNotFound: true,
};

const textOf = (type: string, text: string) => new Response(text, { headers: { "Content-Type": type } });

/** A page and the client's files, on another origin than the API. */
const startSite = () =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      const file = /^\/client\/([a-z-]+\.js)$/.exec(pathname)?.[1];
      if (file !== undefined) return textOf("text/javascript", CLIENT[file] ?? "");
      if (pathname === "/worker.js") return textOf("text/javascript", WORKER);
      if (pathname === "/program.js") return textOf("text/javascript", PROGRAM);
      return textOf("text/html", PAGE);
    },
  });

const allowed = startSite();
const other = startSite();
const service = await startService({ corsOrigins: [allowed.url.origin] });
const browser = await startBrowser();
const shop = await browser.open(allowed.url.href);
afterAll(async () => {
  await service.stop();
  await Promise.all([allowed.stop(true), other.stop(true)]);
});

/** What a script on the page sees of a response. */
async function send(path: string, init: object, { page } = shop): Promise<unknown> {
  return page.evaluate(`
    fetch(${JSON.stringify(service.url + path)}, ${JSON.stringify(init)}).then(
      async (response) => {
        const headers = Object.fromEntries(response.headers);
        return { status: response.status, body: await response.text(), headers };
      },
      () => "blocked")`);
}

const KEY = bearer(service.key);
const json = () => ({
  ...KEY,
  "Content-Type": "application/json",
  "Idempotency-Key": crypto.randomUUID(),
});

test("a page of an allowed origin creates and fetches pets, and reads the headers", async () => {
  const body = '{"name":"Rex","categoryId":9007199254740993}';
  expect(await send("/pets", { method: "POST", headers: json(), body })).toMatchObject({
    status: 201,
    body: '{"id":1,"name":"Rex","categoryId":9007199254740993}',
    headers: { location: `${service.url}/pets?id=1`, "x-ratelimit-limit": expect.any(String) },
  });
  const headers = { ...KEY, "X-Request-Id": "from-a-page" };
  expect(await send("/pets/1", { headers })).toMatchObject({
    status: 200,
    headers: { etag: expect.any(String), deprecation: "@1794614400", "x-request-id": "from-a-page" },
  });
  const order = { method: "POST", headers: json(), body: '{"petId":1}' };
  expect(await send("/store/orders", order)).toMatchObject({ status: 201 });
  const update = { method: "PATCH", headers: json(), body: '{"status":"completed"}' };
  expect(await send("/store/orders/1", update)).toMatchObject({ status: 200 });
});

test("a page of an allowed origin reads errors, but may not send cookies", async () => {
  expect(await send("/pets", {})).toMatchObject({
    status: 401,
    body: expect.stringContaining('"missing_api_key"'),
  });
  expect(await send("/pets", { headers: KEY, credentials: "include" })).toBe("blocked");
});

test("a page of another origin can neither read nor write with a key", async () => {
  const elsewhere = await browser.open(other.url.href);
  const list = async () => (await fetch(`${service.url}/pets`, { headers: KEY })).text();
  const before = await list();
  expect(await send("/pets", { headers: KEY }, elsewhere)).toBe("blocked");
  const body = '{"name":"Evil","categoryId":1}';
  expect(await send("/pets", { method: "POST", headers: json(), body }, elsewhere)).toBe("blocked");
  expect(await list()).toBe(before);
  await elsewhere.close();
});

test("the client works in Chromium, on a page of another origin and in its worker", async () => {
  shop.takeProblems();
  const access = JSON.stringify({ key: service.key, baseUrl: service.url });
  const onPage = await shop.page.evaluate(`import("/program.js").then(({ run }) => run(${access}, "page"))`);
  expect(onPage).toEqual(EXPECTED);
  const inWorker = await shop.page.evaluate(`new Promise((resolve, reject) => {
    const worker = new Worker("/worker.js", { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
    worker.postMessage(${access});
  })`);
  expect(inWorker).toEqual(EXPECTED);
  const expected = [
    `request to another origin: ${service.url}`,
    "console: Failed to load resource: the server responded with a status of 404",
  ];
  const problems = shop
    .takeProblems()
    .filter((problem) => !expected.some((start) => problem.startsWith(start)));
  expect(problems).toEqual([]);
});
