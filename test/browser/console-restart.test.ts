import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";

const fixture = consoleFixture();
/** More than the 16 seconds between two attempts. */
const RECOVERY_TIMEOUT_MS = 60_000;

const bannerOf = (page: Page) => page.getByText("The server does not respond. You see the last data.");

test(
  "without the server the last data stay, dimmed, below one banner; after a restart the page goes on, signed in",
  async () => {
    const { secret } = await fixture.server.newKey({ name: "survivor" });
    const opened = await fixture.open("/keys");
    const { page } = opened;
    await page.getByRole("link", { name: "survivor" }).waitFor();
    await fixture.server.stop();
    await bannerOf(page).waitFor();
    await page.getByText(/Next try in \d+ s/).waitFor();
    expect(await page.getByRole("link", { name: "survivor" }).isVisible()).toBe(true);
    expect(await page.evaluate("getComputedStyle(document.querySelector('main')).opacity")).toBe("0.55");
    await opened.look("server-gone").catch(() => []);
    await fixture.server.start();
    // Without waiting for the button: the page may try again by itself at this very moment, and remove it.
    await page.evaluate("document.querySelector('.banner button')?.click()");
    await bannerOf(page).waitFor({ state: "detached", timeout: RECOVERY_TIMEOUT_MS });
    expect((await fixture.server.client(secret, "GET", "/pets")).status).toBe(200);
    await page.getByText("1/1,000").waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS * 2,
);

test(
  "Try now asks at once, and the page goes on by itself when the server responds again",
  async () => {
    const opened = await fixture.open("/settings");
    const { page } = opened;
    await page.route("**/api/**", (route) => route.abort());
    await page.getByText(/Next try in \d+ s/).waitFor();
    const attempt = page.waitForRequest("**/api/**");
    await page.getByRole("button", { name: "Try now" }).click();
    await attempt;
    await page.unroute("**/api/**");
    await bannerOf(page).waitFor({ state: "detached", timeout: RECOVERY_TIMEOUT_MS });
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a server of another version asks for a reload, after which it does not ask again",
  async () => {
    const opened = await fixture.open("/keys");
    const { page } = opened;
    const prompt = page.getByText("The server has another version now.");
    await page.getByText("production").waitFor();
    expect(await prompt.count()).toBe(0);
    await page.route("**/api/server", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), version: "9.9.9" } });
    });
    await prompt.waitFor();
    expect(await opened.look("another-version")).toEqual([]);
    const reloaded = page.waitForEvent("load");
    await page.getByRole("button", { name: "Reload" }).click();
    await reloaded;
    // The page has the version of the server that it was loaded from, however often it asks.
    for (let i = 0; i < 2; i++) await page.waitForResponse("**/api/server");
    expect(await prompt.count()).toBe(0);
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "the overview is live: a request appears without a reload",
  async () => {
    const { secret } = await fixture.server.newKey({ name: "live one" });
    const opened = await fixture.open("/");
    const { page } = opened;
    await page.getByText("requests now").waitFor();
    expect((await fixture.server.client(secret, "GET", "/pets")).status).toBe(200);
    await page.getByRole("link", { name: "live one" }).waitFor();
    await page.getByText("Requests by outcome as a table").click();
    await page.getByRole("table", { name: "Requests by outcome" }).waitFor();
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
