import { afterAll, expect, test } from "bun:test";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";

const fixture = consoleFixture();

/** A page of somebody else, on another port of this machine and under another name. */
const hostile = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response("<!doctype html><title>hostile</title><h1>hostile</h1>", { headers: HTML }),
});
const HTML = { "Content-Type": "text/html" };
afterAll(() => hostile.stop(true));

/** What a script on the page gets for a request to the admin API. */
const attempt = (url: string, init: string) =>
  `fetch(${JSON.stringify(url)}, ${init}).then(
    (response) => response.text().then((text) => response.type + " " + response.status + " " + text), () => "blocked")`;

test.each([
  ["another port of the same address", () => `http://127.0.0.1:${hostile.port}/`],
  ["another name", () => `http://hostile.test:${hostile.port}/`],
])(
  "a page on %s can neither read nor change anything, although the browser is signed in",
  async (_, hostileUrl) => {
    const { id } = await fixture.server.newKey({ name: "victim" });
    const opened = await fixture.open("/");
    const { page } = opened;
    await page.goto(hostileUrl());
    const api = `${fixture.server.adminUrl}/api`;
    const read = attempt(`${api}/keys`, `{ credentials: "include" }`);
    expect(await page.evaluate(read)).toBe("blocked");
    const blind = attempt(`${api}/keys`, `{ credentials: "include", mode: "no-cors" }`);
    expect(String(await page.evaluate(blind))).toMatch(/^(?:blocked|opaque 0 )$/);
    const revoke = `${api}/keys/${id}/revoke`;
    const write = `{ method: "POST", credentials: "include", mode: "no-cors", body: "{}" }`;
    expect(String(await page.evaluate(attempt(revoke, write)))).toMatch(/^(?:blocked|opaque 0 )$/);
    const json = `{ method: "POST", credentials: "include", headers: { "Content-Type": "application/json" }, body: "{}" }`;
    expect(await page.evaluate(attempt(revoke, json))).toBe("blocked");
    await page.evaluate(`(() => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: ${JSON.stringify(revoke)} });
      document.body.append(form);
      form.submit();
    })()`);
    await page.waitForURL("**/revoke");
    expect(await page.content()).toContain("forbidden_origin");
    const { json: key } = await fixture.server.admin("GET", `/keys/${id}`);
    expect(key).toMatchObject({ state: "active" });
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a page on another origin cannot show the console in a frame",
  async () => {
    const opened = await fixture.open("/");
    const { page } = opened;
    await page.goto(`http://127.0.0.1:${hostile.port}/`);
    await page.evaluate(`new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.src = ${JSON.stringify(fixture.server.adminUrl)};
      frame.onload = resolve;
      document.body.append(frame);
    })`);
    expect(page.frames().map((frame) => frame.url())).not.toContain(`${fixture.server.adminUrl}/`);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a name that somebody else points to this machine gets nothing (DNS rebinding)",
  async () => {
    const { port } = new URL(fixture.server.adminUrl);
    const opened = await fixture.browser.open(`http://rebound.test:${port}/`);
    expect(await opened.page.content()).toContain("forbidden_host");
    await opened.page.goto(`http://rebound.test:${port}/api/session`);
    expect(await opened.page.content()).toContain("forbidden_host");
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "the policy of the pages allows no inline script, and a name that is a script is text",
  async () => {
    const { id } = await fixture.server.newKey({ name: `<img src=x onerror="document.title='broken'">` });
    const opened = await fixture.open(`/keys/${id}`);
    const { page } = opened;
    await page.getByRole("heading", { name: "<img src=x" }).waitFor();
    expect(await page.title()).not.toBe("broken");
    expect(opened.takeProblems()).toEqual([]);
    await page.evaluate(
      `document.body.append(Object.assign(document.createElement("script"), { text: "document.title='broken'" }))`,
    );
    expect(await page.title()).not.toBe("broken");
    expect(opened.takeProblems().join()).toContain("Content Security Policy");
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
