import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Service, startService } from "../service.ts";
import { TestBrowser } from "./browser.ts";

const TEST_TIMEOUT_MS = 60_000;
const HTML = { "Content-Type": "text/html" };
/** The pages of two origins: one that the server allows, and one that it does not. */
const site = () =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("<!doctype html><title>app</title><h1>app</h1>", { headers: HTML }),
  });
const app = site();
const other = site();

let service: Service;
let browser: TestBrowser;
beforeAll(async () => {
  service = await startService({ corsOrigins: [app.url.origin] });
  browser = await TestBrowser.start();
}, TEST_TIMEOUT_MS);
afterAll(async () => {
  await browser.stop();
  await service.stop();
  await Promise.all([app.stop(true), other.stop(true)]);
});

/** What a script on the page sees of a response. */
const request = (path: string, init: object) => `
  fetch(${JSON.stringify(service.url + path)}, ${JSON.stringify(init)}).then(
    async (response) => {
      const headers = Object.fromEntries(response.headers);
      return { status: response.status, body: await response.text(), headers };
    },
    () => "blocked")`;

async function send(origin: string, path: string, init: object): Promise<unknown> {
  const opened = await browser.open(`${origin}/`);
  const result: unknown = await opened.page.evaluate(request(path, init));
  await opened.close();
  return result;
}

const json = () => ({
  Authorization: `Bearer ${service.key}`,
  "Content-Type": "application/json",
  "Idempotency-Key": crypto.randomUUID(),
});

test(
  "a page of an allowed origin creates, lists and fetches pets, and reads the headers",
  async () => {
    const body = '{"name":"Rex","categoryId":9007199254740993}';
    expect(await send(app.url.origin, "/pets", { method: "POST", headers: json(), body })).toMatchObject({
      status: 201,
      body: '{"id":1,"name":"Rex","categoryId":9007199254740993}',
      headers: { location: `${service.url}/pets/1`, "x-ratelimit-limit": expect.any(String) },
    });
    await send(app.url.origin, "/pets", { method: "POST", headers: json(), body });
    const headers = { Authorization: `Bearer ${service.key}`, "X-Request-Id": "from-a-page" };
    expect(await send(app.url.origin, "/pets?limit=1", { headers })).toMatchObject({
      status: 200,
      headers: {
        link: expect.stringContaining('rel="next"'),
        etag: expect.any(String),
        "x-ratelimit-remaining": expect.any(String),
        "x-ratelimit-reset": expect.any(String),
        "x-request-id": "from-a-page",
      },
    });
    expect(await send(app.url.origin, "/pets/1", { headers })).toMatchObject({
      status: 200,
      headers: { deprecation: "@1794614400", sunset: "Thu, 05 Dec 2030 00:00:00 GMT" },
    });
    const order = { method: "POST", headers: json(), body: '{"petId":1}' };
    expect(await send(app.url.origin, "/store/orders", order)).toMatchObject({ status: 201 });
    const update = { method: "PATCH", headers: json(), body: '{"status":"completed"}' };
    expect(await send(app.url.origin, "/store/orders/1", update)).toMatchObject({ status: 200 });
  },
  TEST_TIMEOUT_MS,
);

test(
  "a page of an allowed origin reads errors, but may not send cookies",
  async () => {
    expect(await send(app.url.origin, "/pets", {})).toMatchObject({
      status: 401,
      body: expect.stringContaining('"missing_api_key"'),
    });
    const headers = { Authorization: `Bearer ${service.key}` };
    expect(await send(app.url.origin, "/pets", { headers, credentials: "include" })).toBe("blocked");
  },
  TEST_TIMEOUT_MS,
);

test(
  "a page of another origin can neither read nor write with a key",
  async () => {
    const headers = { Authorization: `Bearer ${service.key}` };
    const list = async () => (await fetch(`${service.url}/pets`, { headers })).text();
    const before = await list();
    expect(await send(other.url.origin, "/pets", { headers })).toBe("blocked");
    const body = '{"name":"Evil","categoryId":1}';
    expect(await send(other.url.origin, "/pets", { method: "POST", headers: json(), body })).toBe("blocked");
    expect(await list()).toBe(before);
  },
  TEST_TIMEOUT_MS,
);
