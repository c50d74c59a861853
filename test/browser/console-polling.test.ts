import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { test } from "./browser.ts";
import { consoleFixture } from "./console-fixture.ts";

const { server, open, failOnProblems } = await consoleFixture();
failOnProblems();
/** The console loads everything again so often. */
const INTERVAL_MS = 2_000;

const { secret } = await server.newKey({ name: "mobile app" });
await server.client(secret, "POST", "/pets", { name: "Rex", categoryId: 1 });

// The time of the page that all tests use can be moved on.
await (await open()).page.clock.install();

/** Loads everything on the page again, three times. A round begins when everything of the one before has arrived. */
async function poll(page: Page): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const response = page.waitForResponse("**/api/server");
    await page.clock.fastForward(INTERVAL_MS);
    await response;
  }
}

/** Every operation responds as it did first. Only the latency of the database is another one each time. */
async function repeatResponses(page: Page): Promise<void> {
  const responses = new Map<string, { readonly database?: object }>();
  let latencyMs = 0;
  await page.route("**/api/**", async (route) => {
    const { pathname } = new URL(route.request().url());
    const json = responses.get(pathname) ?? (await (await route.fetch()).json());
    responses.set(pathname, json);
    const database = { ...json.database, latencyMs: ++latencyMs };
    await route.fulfill({ json: pathname === "/api/server" ? { ...json, database } : json });
  });
}

/**
 * Counts what changes in the document, but for times and windows, which count on or down, and how often pages are
 * rendered: each of them reads the URL.
 */
const COUNT = `
  globalThis.counts = { mutations: 0, renders: 0 };
  for (const method of ["get", "has", "keys"]) {
    const original = URLSearchParams.prototype[method];
    URLSearchParams.prototype[method] = function (...given) {
      counts.renders++;
      return original.apply(this, given);
    };
  }
  const isTime = ({ target }) =>
    (target instanceof Element ? target : target.parentElement).closest("time, .quota-bar, .quota-bar + *") !== null;
  new MutationObserver((records) => {
    counts.mutations += records.filter((record) => !isTime(record)).length;
  }).observe(document.querySelector("main"), {
    subtree: true, childList: true, characterData: true, attributes: true,
  });`;

test.each(["/keys", "/keys/1", "/audit"])(
  "%s: a poll that brings nothing new renders nothing and changes nothing in the document",
  async (path) => {
    const { page } = await open("/settings");
    await repeatResponses(page);
    await page.goto(server.adminUrl + path);
    await page.locator("h1").waitFor();
    await page.getByText("Loading …").first().waitFor({ state: "detached" });
    await poll(page);
    await page.evaluate(COUNT);
    await poll(page);
    expect(await page.evaluate<object>("counts")).toEqual({ mutations: 0, renders: 0 });
  },
);

test("the overview: a poll that brings nothing new draws no plot again", async () => {
  const { page } = await open("/settings");
  await repeatResponses(page);
  await page.goto(`${server.adminUrl}/`);
  await page.getByRole("heading", { name: "Latency" }).waitFor();
  await poll(page);
  await page.evaluate(COUNT);
  await poll(page);
  expect(await page.evaluate<object>("counts")).toMatchObject({ mutations: 0 });
});

test("polls keep the focus, what was typed and what is selected", async () => {
  const { page } = await open("/keys/1/edit");
  const name = page.getByLabel("Name");
  await name.fill("mobile app of the shop");
  await page.evaluate("document.activeElement.setSelectionRange(3, 9)");
  await server.client(secret, "GET", "/pets");
  await poll(page);
  const focused =
    "[document.activeElement.value, document.activeElement.selectionStart, document.activeElement.selectionEnd]";
  expect(await page.evaluate<unknown>(focused)).toEqual(["mobile app of the shop", 3, 9]);

  await page.goto(`${server.adminUrl}/keys`);
  await page.getByRole("link", { name: "mobile app" }).waitFor();
  await page.evaluate("getSelection().selectAllChildren(document.querySelector('.row-link'))");
  await server.client(secret, "GET", "/pets");
  await poll(page);
  expect(await page.evaluate<string>("getSelection().toString()")).toBe("mobile app");
});
