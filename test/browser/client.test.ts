import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { type Service, startService } from "../service.ts";
import { TestBrowser } from "./browser.ts";

let service: Service;
let browser: TestBrowser;
let site: Bun.Server<undefined>;
/** Installing the browser, when it is missing, takes most of it. */
const START_TIMEOUT_MS = 300_000;
beforeAll(async () => {
  site = startSite();
  service = await startService({ corsOrigins: [site.url.origin] });
  browser = await TestBrowser.start();
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.stop();
  await site.stop(true);
  await service.stop();
});

const CLIENT = join(import.meta.dir, "../../src/client");

/** A page and the client's files as they are, on another origin than the API. */
function startSite() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      const file = /^\/client\/([a-z-]+\.js)$/.exec(pathname)?.[1];
      if (file !== undefined) return new Response(Bun.file(join(CLIENT, file)));
      if (pathname === "/worker.js") return script(WORKER);
      if (pathname === "/program.js") return script(PROGRAM);
      return new Response(
        '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>shop</title>',
        {
          headers: { "Content-Type": "text/html" },
        },
      );
    },
  });
}

const script = (text: string) => new Response(text, { headers: { "Content-Type": "text/javascript" } });

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
  const error = await petstore.orders.get(1).catch((error) => error);
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

test("the client works in Chromium, on a page of another origin and in its worker", async () => {
  const shop = await browser.open(site.url.href);
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
  await shop.close();
}, 120_000);
