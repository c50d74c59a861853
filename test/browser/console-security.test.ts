import { afterAll, expect } from "bun:test";
import type { Route } from "playwright-core";
import { test } from "./browser.ts";
import { consoleFixture, showPage, TOKEN, untilAt } from "./console-fixture.ts";

const { server, browser, open } = await consoleFixture();
const API = `${server.adminUrl}/api`;

/** A page of somebody else, on another port of this machine and under another name. */
const HTML = { "Content-Type": "text/html" };
const hostile = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response("<!doctype html><title>hostile</title><h1>hostile</h1>", { headers: HTML }),
});
afterAll(() => hostile.stop(true));

/** What a script on the page learns from a request that sends the cookie. */
const attempt = (url: string, init: object) =>
  `fetch("${url}", ${JSON.stringify({ credentials: "include", ...init })}).then(
    (response) => response.text().then((text) => response.status === 0 && text === "" ? "error" : text), () => "error")`;

/** Resolves when an element with the properties has loaded the URL, or has failed to. */
const load = (tag: string, properties: object) => `new Promise((resolve) => {
  const element = Object.assign(document.createElement("${tag}"), ${JSON.stringify(properties)});
  Object.assign(element, { onload: () => resolve("loaded"), onerror: () => resolve("error") });
  document.body.append(element);
})`;

/** Ways of a page to send requests that need no permission of the server. Each resolves with what the page learns. */
const ATTACKS: Readonly<Record<string, (api: string, keyId: number) => string>> = {
  "a script": (api) => load("script", { src: `${api}/keys` }),
  "an image": (api) => load("img", { src: `${api}/keys` }),
  "a style sheet": (api) => load("link", { rel: "stylesheet", href: `${api}/keys` }),
  "a WebSocket": (api) => `new Promise((resolve) => {
    const socket = new WebSocket("${api.replace("http", "ws")}/keys");
    socket.onopen = () => resolve("loaded");
    socket.onerror = () => resolve("error");
  })`,
  "an event source": (api) => `new Promise((resolve) => {
    const source = new EventSource("${api}/overview", { withCredentials: true });
    source.onmessage = source.onopen = () => resolve("loaded");
    source.onerror = () => { source.close(); resolve("error"); };
  })`,
  "a form with JSON as text": (api) => `new Promise((resolve) => {
    const frame = Object.assign(document.createElement("iframe"), { name: "target" });
    document.body.append(frame);
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: "${api}/keys", enctype: "text/plain", target: "target" });
    form.append(Object.assign(document.createElement("input"), { name: '{"name":"planted","plan":"free","notes":"', value: '"}' }));
    document.body.append(form);
    frame.onload = () => { try { resolve("loaded " + frame.contentDocument.body.innerText); } catch { resolve("error"); } };
    form.submit();
  })`,
  "a sandboxed frame, whose origin is null": (api, id) => `new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts allow-forms";
    frame.srcdoc = \`<script>fetch("${api}/keys/${id}/revoke", { method: "POST", mode: "no-cors", credentials: "include" })
      .then((response) => parent.postMessage(response.type, "*"), () => parent.postMessage("error", "*"))</scr\` + \`ipt>\`;
    window.onmessage = ({ data }) => resolve(data === "opaque" ? "error" : data);
    document.body.append(frame);
  })`,
  "a request without CORS": (api) => attempt(`${api}/keys`, { mode: "no-cors" }),
  "a request": (api) => attempt(`${api}/keys`, {}),
  "a write without CORS, as of a beacon": (api, id) =>
    attempt(`${api}/keys/${id}/revoke`, { method: "POST", mode: "no-cors", keepalive: true, body: "{}" }),
  "a write of JSON": (api, id) =>
    attempt(`${api}/keys/${id}/revoke`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: "{}",
    }),
};

test.each(["127.0.0.1", "hostile.test"])(
  "no way of a page on another port of %s to send a request reads or changes anything, although the browser is signed in",
  async (host) => {
    const url = `http://${host}:${hostile.port}/`;
    const { id } = await server.newKey({ name: "victim" });
    const before = await server.admin("GET", "/keys");
    const { page } = await open("/");
    for (const [name, attack] of Object.entries(ATTACKS)) {
      await page.goto(url);
      expect([name, await page.evaluate(attack(API, id))]).toEqual([name, "error"]);
    }

    const popup = page.waitForEvent("popup");
    await page.evaluate(`void (window.opened = window.open("${server.adminUrl}/keys"))`);
    const opened = await popup;
    await opened.getByRole("heading").first().waitFor();
    const content = await page.evaluate(
      `(() => { try { return opened.document.body.innerText } catch { return "" } })()`,
    );
    expect(content).toBe("");
    await opened.close();

    await page.evaluate(`(() => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: "${API}/keys/${id}/revoke" });
      document.body.append(form);
      form.submit();
    })()`);
    await page.waitForURL("**/revoke");
    expect(await page.content()).toContain("forbidden_origin");
    expect(await server.admin("GET", "/keys")).toEqual(before);
  },
);

test("a page on another origin cannot show the console in a frame", async () => {
  const { page } = await open("/");
  await page.goto(`http://127.0.0.1:${hostile.port}/`);
  await page.evaluate(`new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.src = "${server.adminUrl}";
    frame.onload = resolve;
    document.body.append(frame);
  })`);
  expect(page.frames().map((frame) => frame.url())).not.toContain(`${server.adminUrl}/`);
});

test("a name that somebody else points to this machine gets nothing (DNS rebinding)", async () => {
  const { page } = await open("/");
  const { port } = new URL(server.adminUrl);
  for (const path of ["/", "/api/session"]) {
    await page.goto(`http://rebound.test:${port}${path}`);
    expect(await page.content()).toContain("forbidden_host");
  }
});

/** Names as long as they may be. U+202E and U+2066 turn the direction of what follows. */
const HOSTILE_NAMES = [
  `<script>document.title='broken'</script><img src=x onerror="document.title='broken'">`,
  `"><svg onload="document.title='broken'">{{constructor.constructor('document.title=1')()}}`,
  "\u202Eevil\u2066\u202E",
  "كلب".repeat(341),
  "🐕‍🦺".repeat(256),
  "javascript:document.title='broken'",
];

test("names of clients that are scripts, turn the direction of text or are 1,024 characters long are only text", async () => {
  const { id, secret } = await server.newKey({
    name: "<b onclick=\"document.title='broken'\">bold",
    owner: "javascript:document.title='broken'",
    notes: `</textarea><script>document.title='broken'</script>`,
    labels: ["<i>label</i>"],
  });
  const pets: unknown[] = [];
  for (const name of HOSTILE_NAMES) {
    const { status, json } = await server.client(secret, "POST", "/pets", { name, categoryId: 1 });
    expect(status).toBe(201);
    pets.push(json["id"]);
    await server.admin("PATCH", `/pets/${String(json["id"])}`, { categoryId: 2 });
  }
  await server.client(secret, "POST", "/store/orders", { petId: Number(pets[0]) });
  const { page, takeProblems } = await open("/");
  const paths = ["/keys", `/keys/${id}`, `/keys/${id}/edit`, "/pets", "/orders", "/audit"];
  for (const path of [...paths, ...pets.map((pet) => `/pets/${String(pet)}`)]) {
    await showPage(page, path);
    expect([path, await page.title()]).not.toEqual([path, "broken"]);
    const elements = `main :is(script, img, svg[onload], b, i), a[href^="javascript:"]`;
    expect([path, await page.locator(elements).count()]).toEqual([path, 0]);
    // A family of emoji has joiners, which are not seen either.
    const unseen = String.raw`/[\u202e\u2066]|(?<!\p{ExtPict}\ufe0f?)\u200d/u.test(document.body.innerText)`;
    expect([path, await page.evaluate(unseen)]).toEqual([path, false]);
  }
  await showPage(page, `/pets/${String(pets[2])}`);
  await page.getByRole("heading", { name: String.raw`\u{202e}evil\u{2066}\u{202e}`, level: 1 }).waitFor();
  expect(await page.locator("h1 bdi").getAttribute("title")).toBe(String.raw`\u{202e}evil\u{2066}\u{202e}`);
  expect(await page.getByRole("textbox", { name: "Name" }).inputValue()).toBe(HOSTILE_NAMES[2] ?? "");
  expect(takeProblems()).toEqual([]);
});

test("the policy of the pages allows no inline script", async () => {
  const { page, takeProblems } = await open("/");
  await page.evaluate(
    `document.body.append(Object.assign(document.createElement("script"), { text: "document.title='broken'" }))`,
  );
  expect(await page.title()).not.toBe("broken");
  expect(takeProblems().join()).toContain("Content Security Policy");
});

test("the URL that admin-url prints signs in, keeps the page and its filters, and its code is nowhere to be read", async () => {
  const url = await server.signInUrl("/keys?plan=pro");
  const code = new URL(url).searchParams.get("code") ?? "";
  const { page, takeProblems, close } = await browser.open(url);
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await untilAt(page, "/keys?plan=pro");
  await page.getByRole("link", { name: /^Active/ }).click();
  await untilAt(page, "/keys?plan=pro&state=active");
  await page.reload();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  expect(await page.evaluate("document.cookie")).toBe("");
  const readable = await page.evaluate(
    `JSON.stringify([location.href, document.referrer, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML, history.state])`,
  );
  expect(String(readable)).not.toContain(code);
  await page.goBack();
  expect(page.url()).not.toContain(code);
  expect(takeProblems()).toEqual([]);
  await close();

  const again = await browser.open(url);
  await again.page.getByRole("alert").filter({ hasText: "The code was used" }).waitFor();
  await untilAt(again.page, "/keys?plan=pro");
  await again.close();
});

test("a link asks before it replaces a session, and who stays has used up nothing", async () => {
  const colleague = "colleague.with.a.long.name.of.many.letters@department.example";
  await server.newOperator(colleague, "viewer");
  const { page, look, close } = await browser.open(await server.signInUrl());
  const signedInAs = (name: string) => page.getByRole("banner").getByText(name, { exact: true }).waitFor();
  await signedInAs("bootstrap");
  const secret = () => page.evaluate(`localStorage.getItem("petstore-session")`);
  const before = await secret();
  const link = await server.signInUrl("/keys?plan=pro", colleague);
  const question = page.getByRole("heading", { name: "Sign in with this link?" });
  await page.goto(link);
  await question.waitFor();
  expect(page.url()).toBe(`${server.adminUrl}/keys?plan=pro`);
  expect(await look("link-question")).toEqual([]);
  await page.getByRole("button", { name: "Stay signed in" }).click();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await signedInAs("bootstrap");
  expect(await secret()).toBe(before);
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in with the link" }).click();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await signedInAs(colleague);
  // A second time the code is used up, which the question says; the session stays.
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in with the link" }).click();
  await page.getByRole("alert").filter({ hasText: "The code was used" }).waitFor();
  expect(await look("link-used")).toEqual([]);
  await page.getByRole("button", { name: "Stay signed in" }).click();
  await signedInAs(colleague);
  await close();
  const other = await browser.open(`${server.adminUrl}/?code=pet_code_${"a".repeat(43)}`);
  await other.page.getByRole("alert").filter({ hasText: "The code is for the command line" }).waitFor();
  expect(await other.page.evaluate(`localStorage.getItem("petstore-session")`)).toBeNull();
  await other.close();
});

test("a program on another port of the host gets the cookie, and can do nothing with it", async () => {
  const cookies: string[] = [];
  using listener = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ headers }) {
      cookies.push(headers.get("cookie") ?? "");
      return new Response("<!doctype html><title>elsewhere</title>", {
        headers: { "Content-Type": "text/html" },
      });
    },
  });
  const { page, close } = await browser.open(await server.signInUrl());
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  const secret = String(await page.evaluate(`localStorage.getItem("petstore-session")`));
  expect(secret).toMatch(/^[\w-]{43}$/);
  // A link on the same host: the browser sends the cookie along.
  await page.goto(listener.url.href);
  expect(await page.evaluate(`localStorage.getItem("petstore-session")`)).toBeNull();
  const Cookie = cookies.find((each) => each.includes("petstore-admin-")) ?? "";
  expect(Cookie).not.toBe("");
  const replay = async (path: string, headers: object) =>
    (await fetch(server.adminUrl + path, { headers: { Cookie, ...headers } })).status;
  for (const path of ["/api/keys", "/api/settings", "/metrics"]) expect(await replay(path, {})).toBe(401);
  expect(await replay("/api/keys", { "Petstore-Session": secret })).toBe(200);
  await close();
});

test("without a session every page is the sign-in page, a wrong token says so, the right one leads on, until signing out", async () => {
  // Earlier releases had the token in the URL: it is taken out of it, and does nothing.
  const { page, close } = await browser.open(`${server.adminUrl}/audit?token=${TOKEN}`);
  const signIn = page.getByRole("heading", { name: "Sign in to Petstore" });
  await signIn.waitFor();
  await untilAt(page, "/audit");
  await page.reload();
  await signIn.waitFor();
  expect(await page.getByRole("alert").filter({ hasText: /token/i }).count()).toBe(0);
  await page.getByLabel("Your token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: /token/i }).waitFor();
  await page.getByLabel("Your token").fill(` ${TOKEN} `);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Audit" }).waitFor();
  await untilAt(page, "/audit");
  await page.getByRole("cell", { name: "admin.sign-in-failed" }).first().waitFor();
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await signIn.waitFor();
  expect(await page.evaluate(`localStorage.getItem("petstore-session")`)).toBeNull();
  await page.goto(`${server.adminUrl}/keys`);
  await signIn.waitFor();
  await close();
});

test("a response from before a sign-in does not undo it", async () => {
  const { page, close } = await browser.open(server.adminUrl);
  const signIn = page.getByRole("heading", { name: "Sign in to Petstore" });
  await signIn.waitFor();
  const asked = Promise.withResolvers<Route>();
  await page.route("**/api/session", async (route) => {
    if (route.request().method() === "GET") asked.resolve(route);
    else await route.continue();
  });
  const early = await asked.promise;
  const response = await early.fetch();
  await page.getByLabel("Your token").fill(TOKEN);
  await page.keyboard.press("Enter");
  await signIn.waitFor({ state: "detached" });
  await early.fulfill({ response });
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  expect(await signIn.count()).toBe(0);
  await close();
});

test("when a session ends while a dialog is open, one can sign in, and the dialog is there again", async () => {
  const { page, close } = await browser.open(await server.signInUrl("/keys/1"));
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByLabel("Confirm").fill("half typed");
  await page.context().clearCookies();
  await page.getByLabel("Your token").fill(TOKEN);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  expect(await page.getByLabel("Confirm").inputValue()).toBe("half typed");
  await close();
});

test("when a session ends, a page keeps what was typed, and recovers when another tab has signed in", async () => {
  const { page, close } = await browser.open(await server.signInUrl("/keys/new"));
  await page.getByLabel("Name").fill("half typed");
  await page.context().clearCookies();
  await page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
  const other = await page.context().newPage();
  await other.goto(await server.signInUrl());
  await other.getByRole("navigation", { name: "Main" }).waitFor();
  await page.bringToFront();
  await page.getByRole("heading", { name: "Create a key" }).waitFor();
  expect(await page.getByLabel("Name").inputValue()).toBe("half typed");
  await close();
});
