import { afterEach, describe, expect } from "bun:test";
import { test } from "./browser.ts";
import { consoleFixture } from "./console-fixture.ts";

const { server, browser } = await consoleFixture({ strikes: 2, graceMs: 0 });
const { secret: key } = await server.newKey({ name: "docs" });
const { page, look, takeProblems } = await browser.open(server.apiUrl.replace("/v1", "/docs"));

const LARGE = "9007199254740993";

/** Loads a page of the documentation, in the same page for all tests, and types the key into its form. */
async function open(path: string, key = ""): Promise<void> {
  await page.unrouteAll();
  await page.goto(server.apiUrl.replace("/v1", path));
  await page.getByLabel("API key").fill(key);
}

const sendButton = page.locator(".try-it button[type=submit]");
const status = page.locator(".try-badge");
const requestText = () => page.locator(".try-it").locator("..").locator(".example pre:visible").innerText();
const announcement = page.locator(".try-result [role=status]");
const shownTone = async () => /tone-(\w+)/.exec((await status.getAttribute("class")) ?? "")?.[1];
const responseBody = page.getByRole("region", { name: "Response body" });

/** The status of the response; that of the response before is gone while a request is on its way. */
async function send(): Promise<string> {
  await sendButton.click();
  return (await status.innerText()).replace(/^\S+ /, "");
}

/** A browser reports every response from 400 on. */
afterEach(() => {
  const problems = takeProblems().filter((problem) => !problem.includes("Failed to load resource"));
  expect(problems).toEqual([]);
});

/** A key whose requests get 429 with this code. */
async function rejectedKey(code: "rate_limited" | "key_banned"): Promise<string> {
  // A ban ends when a request is allowed again.
  const limits = { perMinute: 1, perDay: code === "key_banned" ? 1_000 : 1 };
  const { secret } = await server.newKey({ name: "rejected", plan: "enterprise", limits });
  await server.sendUntil(code, secret);
  return secret;
}

describe("a request", () => {
  test("the quickstart sends it with a key and two clicks, and an identifier beyond 2^53 keeps its digits", async () => {
    await open("/docs", key);
    await page.getByLabel("categoryId").fill(LARGE);
    const sent = page.waitForRequest(/\/v1\/pets$/);
    await page.getByText("This changes data in production.").waitFor();
    expect(await send()).toBe("201 Created");
    expect(await shownTone()).toBe("ok");
    expect(await announcement.textContent()).toBe("Response 201 Created");
    expect(await page.locator(".try-explanation").count()).toBe(0);
    expect(await responseBody.innerText()).toContain(`"categoryId": ${LARGE}`);
    await page.getByText("Body, indented").waitFor();
    expect(await responseBody.locator(".token-property").count()).toBe(4);
    expect(await page.locator(".try-result .copy").count()).toBe(1);
    expect((await sent).postData()).toBe(`{"name": "Rex", "categoryId": ${LARGE}, "status": "available"}`);
    const { json } = await server.client(key, "GET", "/pets");
    expect(json).toMatchObject([{ name: "Rex", categoryId: BigInt(LARGE) }]);
    await page.getByText(/^\d+ headers$/).click();
    expect(await look("try-it-created")).toEqual([]);
  });

  test("it is shown as it is sent, as a program in four languages without the key, beside the response", async () => {
    await open("/docs/reference/createPet", ` Bearer ${key}\n`);
    await page.getByRole("button", { name: "Generate an Idempotency-Key" }).click();
    const sent = page.waitForRequest(/\/v1\/pets$/);
    await send();
    const request = await sent;
    const headers = await request.allHeaders();
    expect(headers["authorization"]).toBe(`Bearer ${key}`);
    expect(headers["idempotency-key"]).toMatch(/^[0-9a-f]{32}$/);
    for (const language of ["curl", "fetch", "Python", "TypeScript"]) {
      await page.getByRole("radio", { name: language }).check();
      const shown = await requestText();
      expect(shown).toContain("PETSTORE_KEY");
      expect(shown).toContain(headers["idempotency-key"] ?? "");
    }
    expect(await page.content()).not.toContain(key);
    const boxes = [
      page.locator("#createPet-name"),
      page.locator(".example").first(),
      page.locator(".try-result"),
    ];
    const [field, program, response] = await Promise.all(boxes.map((box) => box.boundingBox()));
    expect(program?.x).toBeGreaterThan((field?.x ?? 0) + (field?.width ?? 0));
    expect(response?.x).toBe(program?.x ?? 0);
    await send();
    await page.getByText(/^\d+ headers$/).click();
    expect(await page.getByText("Idempotent-Replayed").last().isVisible()).toBe(true);
    await page.getByRole("radio", { name: "curl" }).check();
  });

  test("the next page is one click away, and the same page again is 304", async () => {
    for (const name of ["Ada", "Bob"]) await server.client(key, "POST", "/pets", { name, categoryId: 1 });
    await open("/docs/reference/listPets", key);
    await page.getByLabel("limit").fill("1");
    expect(await send()).toBe("200 OK");
    await page.getByRole("button", { name: "Next page" }).click();
    await responseBody.getByText('"id": 2').waitFor();
    expect(await requestText()).toMatch(/^curl "\S+\/v1\/pets\?limit=1&cursor=\w+"/);
    await page.getByText(/^\d+ headers$/).click();
    const explained = page.locator(".try-headers div", { hasText: "X-Content-Type-Options" });
    expect(await explained.locator(".note code").allTextContents()).toEqual(["Content-Type"]);
    const etag = await page.locator(".try-headers div", { hasText: "ETag" }).locator("dd > code").innerText();
    await page.getByLabel("If-None-Match").fill(etag);
    expect(await send()).toBe("304 Not Modified");
    await page.getByText("The response has no body.").waitFor();
    await page.getByText("Not modified: you have this version already, so it has no body.").waitFor();
    expect(await shownTone()).toBe("muted");
  });

  test("it works with the keyboard alone", async () => {
    await open("/docs/reference/getPet");
    await page.getByLabel("API key").focus();
    await page.keyboard.type(key);
    const visited: unknown[] = [];
    for (let i = 0; i < 12 && visited.at(-1) !== "Send request"; i++) {
      await page.keyboard.press("Tab");
      visited.push(
        await page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent"),
      );
    }
    expect(visited).toContain("petId");
    expect(visited.at(-1)).toBe("Send request");
    await page.keyboard.press("Enter");
    expect(await status.innerText()).toContain("200 OK");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Send request");
  });
});

test("a missing identifier is asked for, and a response goes when the input changes", async () => {
  await open("/docs/reference/getPet", key);
  const petId = page.getByLabel("petId");
  await petId.fill("");
  await page.getByText("Enter petId first.").waitFor();
  await sendButton.click({ force: true });
  expect(await page.evaluate("document.activeElement.ariaLabel")).toBe("petId");
  expect(await sendButton.getAttribute("aria-disabled")).toBe("true");
  expect(await announcement.textContent()).toBe("");
  await petId.fill("1");
  expect(await send()).toBe("200 OK");
  await petId.fill("2");
  expect(await responseBody.count()).toBe(0);
  await send();
  await page.getByLabel("API key").fill("é");
  expect(await responseBody.count()).toBe(0);
  await page.getByText("The API key has a character that no header can have.").waitFor();
});

test("the form says what is sent without a value, and has the values that there are", async () => {
  await open("/docs/reference/listPets", key);
  expect(await sendButton.getAttribute("aria-disabled")).toBe("false");
  expect(await page.locator("#try-it-note").textContent()).toBe("");
  expect(await page.getByLabel("limit").inputValue()).toBe("20");
  expect(await page.getByLabel("limit").getAttribute("placeholder")).toBe("not sent: 20");
  expect(await page.getByLabel("cursor").getAttribute("placeholder")).toBe("not sent");
  expect(await page.getByLabel("limit").getAttribute("aria-invalid")).toBe("false");
  await page.getByLabel("limit").fill("0");
  expect(await page.getByLabel("limit").getAttribute("aria-invalid")).toBe("true");
  const optionsOf = (name: string) =>
    page.getByLabel(name, { exact: true }).locator("option").allTextContents();
  expect(await optionsOf("status")).toEqual(["not sent", "available", "pending", "sold"]);
  await open("/docs/reference/createPet");
  expect(await optionsOf("status")).toEqual(["not sent", "available", "pending", "sold"]);
  await open("/docs/reference/updateOrder");
  expect(await optionsOf("status")).toEqual(["completed", "cancelled"]);
  expect(await page.getByLabel("orderId").getAttribute("placeholder")).toBe("");
  expect(await page.getByRole("button", { name: "Generate" }).count()).toBe(0);
});

describe("the key", () => {
  test("it is in the memory of the page alone, unless the tab is told to remember it", async () => {
    const stored = "JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])";
    await open("/docs/reference/getPet");
    const elsewhere = server.apiUrl.replace("/v1", "/docs/reference/getOrder");
    await page.getByLabel("API key").fill(key);
    expect(await page.getByLabel("API key").getAttribute("type")).toBe("password");
    const show = page.locator(".try-key button");
    for (const [text, isPressed, type] of [
      ["Show", "true", "text"],
      ["Hide", "false", "password"],
    ] as const) {
      expect(await show.textContent()).toBe(text);
      await show.click();
      expect(await show.getAttribute("aria-pressed")).toBe(isPressed);
      expect(await page.getByLabel("API key").getAttribute("type")).toBe(type);
    }
    await send();
    expect(await page.evaluate(stored)).not.toContain(key);
    await page.goto(elsewhere);
    expect(await page.getByLabel("API key").inputValue()).toBe("");

    await page.getByLabel(/^Remember/).check();
    await page.getByLabel("API key").fill(key);
    await page.goto(server.apiUrl.replace("/v1", "/docs"));
    expect(await page.getByLabel("API key").inputValue()).toBe(key);
    await page.getByLabel(/^Remember/).uncheck();
    expect(await page.evaluate(stored)).not.toContain(key);
    await page.goto(elsewhere);
    expect(await page.getByLabel("API key").inputValue()).toBe("");
  });

  test("without one, the page says how to get one; a wrong one is explained", async () => {
    await open("/docs/reference/listPets");
    await page.getByText("Get a key").click();
    await page.getByText('petstore keys create --name "my key" --plan free').waitFor();
    expect(await send()).toBe("401 Unauthorized");
    await page.getByText("Enter your API key above.").waitFor();
    expect(await shownTone()).toBe("error");
    await page.getByText("It stays in this page and is sent only to this server.").waitFor();
    expect(await look("try-it-401")).toEqual([]);
    await page.getByLabel("API key").fill("pet_test_1");
    await page.getByText("Keys of production begin with pet_live_.").waitFor();
    expect(await page.getByLabel("API key").getAttribute("aria-invalid")).toBe("true");
    expect(await send()).toBe("401 Unauthorized");
    expect(await page.getByText("Enter your API key above.").count()).toBe(0);
    await page.getByRole("link", { name: "What invalid_api_key means" }).click();
    await page.waitForURL(/#invalid_api_key$/);
    expect(await page.locator("#invalid_api_key").isVisible()).toBe(true);
  });
});

describe("what goes wrong", () => {
  test("after a 429 the page counts down instead of sending, until there is another key", async () => {
    await open("/docs/reference/listPets", await rejectedKey("rate_limited"));
    expect(await send()).toBe("429 Too Many Requests");
    expect(await shownTone()).toBe("limited");
    await page.getByText(/^Send again in \d+ h$/).waitFor();
    await page.getByText("Until then, this key gets 429.").waitFor();
    await page.locator(".try-gauge.tone-limited", { hasText: "1 of 1 requests used" }).waitFor();
    await page.getByText(/^The window closes in \d+ h$/).waitFor();
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    await sendButton.click({ force: true });
    await page.getByLabel("API key").press("Enter");
    await page.getByLabel("API key").fill(key);
    expect(await send()).toBe("200 OK");
    // That of the other key alone.
    expect(requests).toHaveLength(1);
  });

  test("a ban is named, with its end", async () => {
    await open("/docs/reference/listPets", await rejectedKey("key_banned"));
    expect(await send()).toBe("429 Too Many Requests");
    expect(await shownTone()).toBe("error");
    await page.getByText(/^This API key is temporarily banned/).waitFor();
    await page.getByText(/You can send again in [1-5] min\./).waitFor();
    await page.getByText(/^The ban ends in [1-5] min$/).waitFor();
  });

  test("the countdown ends after Retry-After, and then a request is sent", async () => {
    await open("/docs/reference/listPets");
    const body = JSON.stringify({ code: "rate_limited", message: "Wait.", status: 429 });
    const headers = { "Retry-After": "2" };
    await page.route("**/v1/**", (route) => route.fulfill({ status: 429, headers, body }));
    const startedAt = performance.now();
    await send();
    await page.getByRole("button", { name: "Send request" }).waitFor();
    expect(performance.now() - startedAt).toBeGreaterThan(1_900);
    expect(await page.getByText(/You can send again/).count()).toBe(0);
    await page.unrouteAll();
    expect(await send()).toBe("401 Unauthorized");
  });

  test("the gauge begins to fill with the first request, and warns when 80 % are used", async () => {
    await open("/docs/reference/listPets");
    for (const [used, width, warns, resetIn = 60] of [
      [0, 0, false],
      [1, 4, false],
      [239, 94, false],
      [240, 94.4, true],
      // The window has closed.
      [240, 0, false, -60],
    ] as const) {
      const headers = {
        "X-RateLimit-Limit": "300",
        "X-RateLimit-Remaining": `${300 - used}`,
        "X-RateLimit-Reset": `${Math.ceil(Date.now() / 1_000) + resetIn}`,
      };
      await page.unrouteAll();
      await page.route("**/v1/**", (route) => route.fulfill({ headers, body: "[]" }));
      await send();
      const isOpen = resetIn > 0;
      const gauge = page.locator(".try-gauge", { hasText: `${isOpen ? used : 0} of 300 requests used` });
      await gauge
        .getByText(isOpen ? /^The window closes in/ : "The next request opens a new window")
        .waitFor();
      const shown = await gauge.evaluate((element) => {
        const fill = element.querySelector(".bar span")?.getBoundingClientRect().width ?? 0;
        return [Math.round(fill * 10) / 10, element.classList.contains("tone-limited")];
      });
      expect(shown).toEqual([width, warns]);
    }
  });

  test("no response, a cancelled request and a response that is no JSON are shown as what they are", async () => {
    await open("/docs/reference/listPets");
    await page.route("**/v1/**", (route) => route.abort());
    await sendButton.click();
    await page.getByText(/^No response:/).waitFor();

    await page.unrouteAll();
    let requests = 0;
    await page.route("**/v1/**", () => void requests++);
    await sendButton.click();
    await page.getByText("Waiting for the response …").waitFor();
    expect(await announcement.textContent()).toBe("Sending");
    expect(await sendButton.getAttribute("aria-disabled")).toBe("true");
    await sendButton.click({ force: true });
    // What the last request got is gone.
    expect(await page.getByText(/^No response:/).count()).toBe(0);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText(/^Cancelled\./).waitFor();
    expect([await announcement.textContent(), requests]).toEqual(["Request cancelled", 1]);

    await page.unrouteAll();
    const body = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    const headers = { "Content-Type": "text/html", Constructor: "<b>x</b>" };
    await page.route("**/v1/**", (route) => route.fulfill({ status: 502, headers, body }));
    expect(await send()).toBe("502 Bad Gateway");
    expect(await responseBody.innerText()).toBe(body);
    expect(await page.locator(".try-explanation").count()).toBe(0);
    await page.getByText("Body", { exact: true }).last().waitFor();
    await page.getByText(/^\d+ headers$/).click();
    await page.getByText("<b>x</b>").waitFor();
  });

  test("markup in a response and in an error is text", async () => {
    const name = '<img src=x onerror="alert(1)"></code></pre><script>alert(2)</script>';
    const created = await server.client(key, "POST", "/pets", { name, categoryId: 1 });
    await open("/docs/reference/createPet", key);
    await page.getByLabel("name", { exact: true }).fill(name);
    expect(await send()).toBe("201 Created");
    expect(await responseBody.innerText()).toContain(JSON.stringify(name));
    expect(created.status).toBe(201);
    await page.getByLabel("categoryId").fill("<b>7</b>");
    await page.getByText("categoryId must be an integer in decimal digits.").waitFor();
    expect(await send()).toBe("400 Bad Request");
    expect(await shownTone()).toBe("error");
    await page
      .getByText(/categoryId must be an integer from -2\^63/)
      .first()
      .waitFor();
    expect(await page.locator("main :is(img, script, b)").count()).toBe(0);
  });
});
