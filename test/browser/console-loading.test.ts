import { expect } from "bun:test";
import type { Page, Request, Route } from "playwright-core";
import { PAGES } from "../../src/operator/console/pages.ts";
import { until } from "../timing.ts";
import { test, untilTrue } from "./browser.ts";
import { consoleFixture, showPage } from "./console-fixture.ts";

/** A server on a busy machine reuses for up to 30 seconds what took long to load. */
const WAIT_MS = 45_000;

const { server, open } = await consoleFixture({ strikes: 3, graceMs: 0 });
const { secret } = await server.newKey({ name: "mobile app" });
const limits = { perMinute: 1, perDay: 100 };
const banned = await server.newKey({ name: "banned", plan: "enterprise", limits });
await server.sendUntil("key_banned", banned.secret);
const { json } = await server.client(secret, "POST", "/pets", {
  name: "Rex",
  categoryId: 1,
  status: "available",
});
await server.client(secret, "POST", "/store/orders", `{"petId":${json["id"]}}`);
// The overview of a service that nobody has used loads other things. Its figures come a moment later.
await until(async () => Object((await server.admin("GET", "/overview")).json)["topKeys"].length > 0, WAIT_MS);

/** The console loads everything again so often. */
const INTERVAL_MS = 2_000;
const DAY_MS = 86_400_000;

// The time of the page that all tests use can be moved on.
await (await open()).page.clock.install();

/** Holds the next response of a path until the returned function sends it. What comes later is not held. */
async function holdNext(page: Page, path: string) {
  const held = Promise.withResolvers<{ readonly route: Route; readonly json: object }>();
  let isHeld = false;
  await page.route(path, async (route) => {
    if (isHeld || route.request().method() !== "GET") return route.fallback();
    isHeld = true;
    held.resolve({ route, json: Object(await (await route.fetch()).json()) });
  });
  return {
    asked: () => held.promise,
    async send() {
      const { route, json } = await held.promise;
      const arrived = page.waitForResponse(route.request().url());
      await route.fulfill({ json });
      await (await arrived).finished();
    },
  };
}

test("a response that is late overwrites nothing: the name before a change does not come back", async () => {
  const { id } = await server.newKey({ name: "before" });
  const { page } = await open(`/keys/${id}`);
  await page.getByRole("heading", { name: "before" }).waitFor();
  const late = await holdNext(page, `**/api/keys/${id}`);
  await page.clock.fastForward(INTERVAL_MS);
  await late.asked();
  await server.admin("PATCH", `/keys/${id}`, { name: "after" });
  // Hiding and showing the page loads everything again.
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await page.getByRole("heading", { name: "after" }).waitFor();
  await page.evaluate(`globalThis.names = []; new MutationObserver(() => names.push(document.querySelector("h1").innerText))
    .observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true })`);
  await late.send();
  await page.clock.fastForward(INTERVAL_MS);
  await page.waitForResponse(`**/api/keys/${id}`);
  expect(await page.evaluate<string[]>("names.filter((name) => name !== 'after')")).toEqual([]);
});

test("nor does it in what every page has: the version of the server, and the operator who has signed in", async () => {
  const { page } = await open("/settings");
  await page.getByText("Effective settings").waitFor();
  for (const [path, change] of [
    ["server", { version: "9.9.9" }],
    ["session", { operator: { id: 1, name: "somebody else", role: "viewer" } }],
  ] as const) {
    const late = await holdNext(page, `**/api/${path}`);
    await page.clock.fastForward(INTERVAL_MS);
    await late.asked();
    const later = page.waitForResponse(`**/api/${path}`);
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await (await later).finished();
    const { route } = await late.asked();
    const json: object = await (await route.fetch()).json();
    const arrived = page.waitForResponse(route.request().url());
    await route.fulfill({ json: { ...json, ...change } });
    await (await arrived).finished();
    await page.evaluate("new Promise(requestAnimationFrame)");
    expect(await page.getByText("The server has another version now.").count()).toBe(0);
    expect(await page.getByText("somebody else").count()).toBe(0);
    await page.unroute(`**/api/${path}`);
  }
});

/** The paths of the pages of this server. */
const PATHS = Object.values(PAGES).map((path) =>
  path.replace("{id}", path.startsWith("/keys") ? `${banned.id}` : "1"),
);

/** What every page loads. */
const SHARED = ["/api/server", "/api/session"];

test.each(PATHS)("%s: whatever it loads, a failure is said, with a way to try again", async (path) => {
  const { page } = await open("/settings");
  const urls = new Set<string>();
  const listen = (request: Request) => urls.add(new URL(request.url()).pathname);
  page.on("request", listen);
  await page.goto("about:blank");
  urls.clear();
  await page.goto(server.adminUrl + path);
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await page.getByText("Loading …").first().waitFor({ state: "detached" });
  await until(async () => SHARED.every((url) => urls.has(url)), WAIT_MS);
  await page.waitForLoadState("networkidle");
  page.off("request", listen);
  const loaded = [...urls].filter((url) => url.startsWith("/api/"));
  const body = { code: "internal_error", message: "It failed.", status: 500 };
  const alert = page.getByRole("alert").filter({ hasText: "Not all of this page could be loaded" });
  for (const url of loaded.filter((each) => path === "/" || !SHARED.includes(each))) {
    const isIt = ({ pathname }: URL) => pathname === url;
    await page.route(isIt, (route) => route.fulfill({ status: 500, json: body }));
    if (SHARED.includes(url)) await page.goto(server.adminUrl + path);
    else {
      // To load the console again takes ten times as long as to show another page.
      await showPage(page, path === "/settings" ? "/plans" : "/settings");
      await showPage(page, path);
    }
    // Without the session nobody is signed in.
    if (url === "/api/session") await page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
    else await alert.getByRole("button", { name: "Try again" }).waitFor();
    await page.unroute(isIt);
    if (url !== "/api/session") {
      await page.clock.fastForward(INTERVAL_MS);
      await alert.waitFor({ state: "detached" });
    }
  }
});

test("how many times a key was banned in 24 hours is counted from now, also on a page that is open for a day", async () => {
  const { page } = await open(`/keys/${banned.id}`);
  await page.getByText(/^Banned until .*requests get 429/).waitFor();
  const timeOf = (request: Request) => Date.parse(new URL(request.url()).searchParams.get("since") ?? "");
  // The bans of the history below begin at midnight.
  const isCount = (request: Request) =>
    request.url().includes("action=key.banned") && timeOf(request) % DAY_MS !== 0;
  const sinceOf = async () => {
    const request = page.waitForRequest(isCount);
    await page.clock.fastForward(INTERVAL_MS);
    return timeOf(await request);
  };
  const before = await sinceOf();
  await page.clock.fastForward(DAY_MS);
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  expect((await sinceOf()) - before).toBeGreaterThanOrEqual(DAY_MS - INTERVAL_MS);
});

test("every control that is not valid has a border in the colour of errors", async () => {
  const { page } = await open("/keys/new");
  const tags = new Set<string>();
  for (const path of ["/keys/new", "/pets/new", "/requests", "/pets/1"]) {
    await showPage(page, path);
    const faults = await page.evaluate<string[]>(`(() => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = "var(--error)";
      const colour = getComputedStyle(probe).color;
      const all = [...document.querySelectorAll("input:not([type=radio], [type=checkbox]), select, textarea")];
      return all.map((control) => {
        control.style.transition = "none";
        control.setAttribute("aria-invalid", "true");
        return control.tagName + " " + (getComputedStyle(control).borderTopColor === colour);
      });
    })()`);
    for (const each of faults) tags.add(each);
  }
  expect([...tags].toSorted()).toEqual(["INPUT true", "SELECT true", "TEXTAREA true"]);
});

test("Ctrl+K: ArrowDown before the keys arrive chooses the first place, and a search that fails says so", async () => {
  const { page } = await open("/settings");
  const field = page.getByRole("combobox", { name: "A page, a key or a request" });
  const late = await holdNext(page, "**/api/keys?search=*");
  await page.keyboard.press("Control+k");
  await field.fill("mobile");
  await page.clock.runFor(INTERVAL_MS / 2);
  await late.asked();
  await page.getByText("Searching …").waitFor();
  await page.keyboard.press("ArrowDown");
  await late.send();
  await page.getByRole("option", { name: "mobile app Key", selected: true }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "mobile app" }).waitFor();

  const body = { code: "internal_error", message: "It failed.", status: 500 };
  await page.route("**/api/keys?search=*", (route) => route.fulfill({ status: 500, json: body }));
  await page.keyboard.press("Control+k");
  await field.fill("mobile");
  await page.clock.runFor(INTERVAL_MS / 2);
  await page.getByText("Keys cannot be searched: The server failed").waitFor();
  expect(await page.getByText("Nothing has that name.").count()).toBe(0);
  await page.keyboard.press("Escape");
  await untilTrue(page, "document.querySelector('dialog') === null");
});
