import { afterAll, expect, test } from "bun:test";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";
import { isObject, TOKEN } from "./console-server.ts";

const fixture = consoleFixture();
const HTML = { "Content-Type": "text/html" };
const hostile = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response("<!doctype html><title>hostile</title><h1>hostile</h1>", { headers: HTML }),
});
afterAll(() => hostile.stop(true));

/** Ways of a page to send requests that need no permission of the server. Each resolves with what the page learns. */
const ATTACKS: Readonly<Record<string, (api: string, keyId: number) => string>> = {
  "a script": (api) => `new Promise((resolve) => {
    const script = document.createElement("script");
    Object.assign(script, { src: "${api}/keys", onload: () => resolve("loaded"), onerror: () => resolve("error") });
    document.body.append(script);
  })`,
  "an image": (api) => `new Promise((resolve) => {
    const image = new Image();
    Object.assign(image, { src: "${api}/keys", onload: () => resolve("loaded"), onerror: () => resolve("error") });
  })`,
  "a style sheet": (api) => `new Promise((resolve) => {
    const link = document.createElement("link");
    Object.assign(link, { rel: "stylesheet", href: "${api}/keys", onload: () => resolve("loaded"), onerror: () => resolve("error") });
    document.head.append(link);
  })`,
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
  "a beacon": (api, id) => `new Promise((resolve) => {
    navigator.sendBeacon("${api}/keys/${id}/revoke", new Blob(["{}"], { type: "text/plain" }));
    setTimeout(() => resolve("error"), 300);
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
  "a window of the console": (api) => `new Promise((resolve) => {
    const opened = window.open("${api.replace("/api", "/keys")}");
    setTimeout(() => {
      try { resolve("loaded " + opened.document.body.innerText); } catch { resolve("error"); }
    }, 500);
  })`,
};

test(
  "no way of a page elsewhere to send a request reads or changes anything, although the browser is signed in",
  async () => {
    const { id } = await fixture.server.newKey({ name: "victim" });
    const before = await fixture.server.admin("GET", "/keys");
    for (const origin of [`http://127.0.0.1:${hostile.port}/`, `http://hostile.test:${hostile.port}/`]) {
      const opened = await fixture.open("/");
      for (const [name, attack] of Object.entries(ATTACKS)) {
        await opened.page.goto(origin);
        const learned = await opened.page.evaluate(attack(`${fixture.server.adminUrl}/api`, id));
        // A window that the browser has separated looks empty.
        expect([name, learned === "loaded " ? "error" : learned]).toEqual([name, "error"]);
      }
      await opened.close();
    }
    expect(await fixture.server.admin("GET", "/keys")).toEqual(before);
  },
  TEST_TIMEOUT_MS,
);

/** As long as a name may be. U+202E and U+2066 turn the direction of what follows. */
const HOSTILE_NAMES = [
  `<script>document.title='broken'</script><img src=x onerror="document.title='broken'">`,
  `"><svg onload="document.title='broken'">{{constructor.constructor('document.title=1')()}}`,
  "\u202Eevil\u2066\u202E",
  "كلب".repeat(341),
  "🐕‍🦺".repeat(256),
  "javascript:document.title='broken'",
];

test(
  "names of clients that are scripts, turn the direction of text or are 1,024 characters long are only text",
  async () => {
    const { server } = fixture;
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
      const petId = isObject(json) ? json["id"] : undefined;
      pets.push(petId);
      await server.admin("PATCH", `/pets/${petId}`, { categoryId: 2 });
    }
    await server.client(secret, "POST", "/store/orders", { petId: Number(pets[0]) });
    const opened = await fixture.open("/");
    const paths = ["/keys", `/keys/${id}`, `/keys/${id}/edit`, "/pets", "/orders", "/audit"];
    for (const path of [...paths, ...pets.map((pet) => `/pets/${String(pet)}`)]) {
      await opened.page.goto(server.adminUrl + path);
      await opened.page.getByRole("heading", { level: 1 }).waitFor();
      await opened.page.waitForLoadState("networkidle");
      expect([path, await opened.page.title()]).not.toEqual([path, "broken"]);
      expect([path, await opened.page.locator("main :is(script, img, svg[onload], b, i)").count()]).toEqual([
        path,
        0,
      ]);
      expect([path, await opened.page.locator(`a[href^="javascript:"]`).count()]).toEqual([path, 0]);
    }
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "the token is in no place that a page or a later visitor can read",
  async () => {
    const opened = await fixture.open("/settings");
    const { page } = opened;
    await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
    const readable = await page.evaluate(
      `JSON.stringify([location.href, document.referrer, document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML, history.state])`,
    );
    expect(String(readable)).not.toContain(TOKEN);
    await page.goto(`${fixture.server.adminUrl}/keys`);
    await page.goBack();
    expect(page.url()).not.toContain(TOKEN);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
