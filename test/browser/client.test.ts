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
  service = await startService();
  browser = await TestBrowser.start();
  site = startSite();
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.stop();
  await site.stop(true);
  await service.stop();
});

const CLIENT = join(import.meta.dir, "../../src/client");

/** A page, the client's files as they are, and the API, on one origin. */
function startSite() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      if (pathname.startsWith("/v1/"))
        return fetch(new Request(service.url.replace("/v1", pathname + search), request));
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
export async function run(key, name) {
  const petstore = new Petstore({ key, baseUrl: new URL("/v1", location.origin).href });
  const { data, response } = await petstore.pets
    .create({ name, categoryId: 9007199254740993n, status: "sold" })
    .withResponse();
  await Promise.all(Array.from({ length: 5 }, () => petstore.pets.create({ name, categoryId: 1, status: "sold" })));
  let listed = 0;
  for await (const pet of petstore.pets.list({ status: "sold", limit: 2 })) if (pet.name === name) listed++;
  const error = await petstore.orders.get(1).catch((error) => error);
  return {
    categoryId: String(data.categoryId),
    hasRequestId: response.requestId !== undefined,
    limit: response.rateLimit?.limit,
    listed,
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
  listed: 6,
  isNotFound: true,
};

test("the client works in Chromium, on a page and in a worker", async () => {
  const shop = await browser.open(site.url.href);
  const key = JSON.stringify(service.key);
  const onPage = await shop.page.evaluate(`import("/program.js").then(({ run }) => run(${key}, "page"))`);
  expect(onPage).toEqual(EXPECTED);
  const inWorker = await shop.page.evaluate(`new Promise((resolve, reject) => {
    const worker = new Worker("/worker.js", { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
    worker.postMessage(${key});
  })`);
  expect(inWorker).toEqual(EXPECTED);
  // The 404 of the order that does not exist.
  expect(shop.takeProblems().filter((problem) => !problem.includes("404"))).toEqual([]);
  await shop.close();
}, 120_000);
