import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { test } from "./browser.ts";
import { consoleFixture } from "./console-fixture.ts";

const { server, open, failOnProblems } = await consoleFixture();
failOnProblems();
/** The console loads everything again so often. */
const INTERVAL_MS = 2_000;
/** The longest time between two attempts while the server does not respond. */
const MAX_RETRY_MS = 16_000;

const bannerOf = (page: Page) => page.getByText("The server does not respond. You see the last data.");

// The time of the page that all tests use can be moved on.
await (await open()).page.clock.install();

test("without the server the last data stay, dimmed, below one banner; after a restart the page goes on, signed in", async () => {
  const { secret } = await server.newKey({ name: "survivor" });
  const { page, screenshots } = await open("/keys");
  await page.getByRole("link", { name: "survivor" }).waitFor();
  await server.stop();
  await page.clock.fastForward(INTERVAL_MS);
  await bannerOf(page).waitFor();
  await page.getByText(/Next try in \d+ s/).waitFor();
  expect(await page.getByRole("link", { name: "survivor" }).isVisible()).toBe(true);
  expect(await page.evaluate("getComputedStyle(document.querySelector('main')).opacity")).toBe("0.55");
  await screenshots("server-gone");
  await server.start();
  // Without waiting for the button: the page may try again by itself at this very moment, and remove it.
  await page.evaluate("document.querySelector('.banner button')?.click()");
  await bannerOf(page).waitFor({ state: "detached" });
  expect((await server.client(secret, "GET", "/pets")).status).toBe(200);
  await page.clock.fastForward(INTERVAL_MS);
  await page.getByText("1 / 100,000").waitFor();
});

test("Try now asks at once, and the page goes on by itself when the server responds again", async () => {
  const { page } = await open("/settings");
  await page.route("**/api/**", (route) => route.abort());
  await page.clock.fastForward(INTERVAL_MS);
  await page.getByText(/Next try in \d+ s/).waitFor();
  const attempt = page.waitForRequest("**/api/**");
  await page.getByRole("button", { name: "Try now" }).click();
  await attempt;
  await page.unroute("**/api/**");
  while (await bannerOf(page).isVisible()) await page.clock.fastForward(MAX_RETRY_MS);
});

test("a server that does not respond is asked again after 2, 4, 8 and then every 16 seconds", async () => {
  const { page } = await open("/settings");
  await page.getByText("Effective settings").waitFor();
  const askedAt: number[] = [];
  await page.route("**/api/server", async (route) => {
    askedAt.push(await page.evaluate<number>("Date.now()"));
    await route.abort();
  });
  for (let seconds = 0; askedAt.length < 6; seconds++) {
    expect(seconds).toBeLessThan(120);
    await page.clock.fastForward(1_000);
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 20))");
  }
  const waits = askedAt.slice(1).map((at, i) => Math.floor(Math.log2((at - (askedAt[i] ?? 0)) / 1_000)));
  expect(waits).toEqual([1, 2, 3, 4, 4]);
});

test("a server of another version asks for a reload, after which it does not ask again", async () => {
  const { page, look } = await open("/keys");
  const prompt = page.getByText("The server has another version now.");
  await page.getByText("production").waitFor();
  expect(await prompt.count()).toBe(0);
  await page.route("**/api/server", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), version: "9.9.9" } });
  });
  await page.clock.fastForward(INTERVAL_MS);
  await prompt.waitFor();
  expect(await look("another-version")).toEqual([]);
  const reloaded = page.waitForEvent("load");
  await page.getByRole("button", { name: "Reload" }).click();
  await reloaded;
  // The page has the version of the server that it was loaded from, however often it asks.
  for (let i = 0; i < 2; i++) {
    const asked = page.waitForResponse("**/api/server");
    await page.clock.fastForward(INTERVAL_MS);
    await asked;
  }
  expect(await prompt.count()).toBe(0);
});
