import { expect } from "bun:test";
import type { Dialog, Page } from "playwright-core";
import { MAX_OVERLAP_MS } from "../../src/domain/key-fields.ts";
import { until } from "../timing.ts";
import { test, untilTrue } from "./browser.ts";
import { consoleFixture, untilAt } from "./console-fixture.ts";

/** Three requests after the limit ban a key, at once. */
const { server, open, failOnProblems } = await consoleFixture({ strikes: 3, graceMs: 0 });
failOnProblems();
const HOSTILE_NAME = `<script>alert("1")</script> مفتاح 🐕`;

async function create(page: Page, name: string): Promise<string> {
  await page.getByRole("link", { name: "Create key" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByRole("radio", { name: /^Pro/ }).check();
  await page.getByRole("button", { name: "Create key" }).click();
  return page.getByLabel("Secret", { exact: true }).inputValue();
}

test("a key is created, its secret is shown once and selected, and leaving without copying asks once", async () => {
  const { page } = await open("/keys");
  const secret = await create(page, HOSTILE_NAME);
  expect(secret).toMatch(/^pet_live_[0-9A-Za-z]{36}$/);
  await untilTrue(page, `getSelection().toString() === "${secret}"`);
  const curl = await page.getByLabel("curl command", { exact: true }).textContent();
  expect(curl).toBe(`curl ${server.apiUrl}/pets \\\n  -H "Authorization: Bearer ${secret}"`);
  expect((await server.client(secret, "GET", "/pets")).status).toBe(200);
  await page.keyboard.press("Escape");
  await page.getByText("You have not copied the secret").waitFor();
  await page.getByRole("button", { name: "Close without copying" }).click();
  await page.getByRole("heading", { name: HOSTILE_NAME }).waitFor();
  expect(await page.content()).not.toContain(secret);
  await page.getByText("key.created").waitFor();
  await page.getByText("Console").first().waitFor();
  // The request above is counted.
  await page.getByText("1 / 10,000").waitFor();
});

test("the copy button copies the secret, and then the dialog closes without asking", async () => {
  const { page } = await open("/keys");
  // Pages of other tests in the same browser share its clipboard.
  await page.evaluate("navigator.clipboard.writeText = async (text) => void (window.copied = text)");
  const secret = await create(page, "to copy");
  await page.getByRole("button", { name: "Copy secret" }).click();
  await page.getByText("Copied").waitFor();
  expect(await page.evaluate("window.copied")).toBe(secret);
  // Nothing would be lost: the form below it is saved.
  const leave = `dispatchEvent(new Event("beforeunload", { cancelable: true }))`;
  expect(await page.evaluate(leave)).toBe(true);
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("heading", { name: "to copy" }).waitFor();
});

test("a key is edited: name, plan, labels and access hold for clients", async () => {
  const { id, secret } = await server.newKey({ name: "before" });
  const { page } = await open(`/keys/${id}`);
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByRole("heading", { name: "Edit before" }).waitFor();
  expect(await page.getByRole("button", { name: "Save changes" }).isDisabled()).toBe(true);
  await page.getByLabel("Name").fill("after");
  await page.getByRole("radio", { name: /^Enterprise/ }).check();
  await page.getByLabel("Requests per minute").fill("7");
  await page.getByLabel("Requests per day").fill("70");
  await page.getByLabel("Labels").fill("eu, mobile");
  await page.getByRole("radio", { name: /^Read only/ }).check();
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { name: "after" }).waitFor();
  await page.getByText("Enterprise: 7 a minute, 70 a day").waitFor();
  const { status, json } = await server.client(secret, "POST", "/pets", { name: "Rex", categoryId: 7 });
  expect([status, json["code"]]).toEqual([403, "read_only_key"]);
  await page.getByRole("link", { name: "mobile" }).click();
  await untilAt(page, "/keys?label=mobile");
  await page.getByText("1 key", { exact: true }).waitFor();
});

test("a rotation with an overlap keeps the earlier secret, and one without needs the name", async () => {
  const { id, secret } = await server.newKey({ name: "to rotate" });
  const { page } = await open(`/keys/${id}`);
  await page.getByRole("button", { name: "Rotate secret" }).click();
  await page.getByRole("button", { name: "Rotate secret" }).last().click();
  const second = await page.getByLabel("Secret", { exact: true }).inputValue();
  expect(second).not.toBe(secret);
  for (const each of [secret, second]) expect((await server.client(each, "GET", "/pets")).status).toBe(200);
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Close without copying" }).click();
  await page.locator(".secrets li").nth(1).waitFor();

  await page.getByRole("button", { name: "Rotate secret" }).click();
  // The longest overlap that is offered is the longest that the server accepts.
  const radios = await page.getByRole("radio").all();
  const overlaps = await Promise.all(radios.map((radio) => radio.inputValue()));
  expect(Math.max(...overlaps.map(Number))).toBe(MAX_OVERLAP_MS / 1_000);
  await page.getByRole("radio", { name: /^None/ }).check();
  const rotate = page.getByRole("button", { name: "Rotate secret" }).last();
  expect(await rotate.isDisabled()).toBe(true);
  await page.getByLabel("Confirm").fill("to rotate");
  await rotate.click();
  const third = await page.getByLabel("Secret", { exact: true }).inputValue();
  expect((await server.client(second, "GET", "/pets")).status).toBe(401);
  expect((await server.client(third, "GET", "/pets")).status).toBe(200);
});

test("a key is revoked after its name was typed, with the keyboard alone", async () => {
  const { id, secret } = await server.newKey({ name: "to revoke" });
  const { page } = await open(`/keys/${id}`);
  const secrets = page.locator(".secrets");
  await secrets.getByText("works without end").waitFor();
  await page.getByRole("button", { name: "Revoke" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("fail with 401 within one second").waitFor();
  const revoke = page.getByRole("button", { name: "Revoke to revoke" });
  await page.keyboard.type("to revok");
  expect(await revoke.isDisabled()).toBe(true);
  await page.keyboard.type("e");
  await page.keyboard.press("Enter");
  await page.locator(".badge", { hasText: "revoked" }).waitFor();
  await secrets.getByText("revoked").waitFor();
  expect((await server.client(secret, "GET", "/pets")).status).toBe(401);
  expect(await page.getByRole("button", { name: "Revoke" }).count()).toBe(0);
  // The button is gone; the keyboard goes on from the heading.
  await page.locator("h1:focus").waitFor();
});

test("a key is disabled and enabled again: requests get 401 in between, and the audit page names both", async () => {
  const { id, secret } = await server.newKey({ name: "mobile app" });
  const { page, look, screenshots } = await open(`/keys/${id}`);
  const status = async () => (await server.client(secret, "GET", "/pets")).status;
  expect(await status()).toBe(200);
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("heading", { name: "Disable mobile app" }).waitFor();
  await page.getByText("Requests get 401 within one second; you can enable it again.").waitFor();
  await screenshots("disable-dialog");
  await page.getByLabel("Reason").fill("leaked in a repository");
  await page.getByRole("button", { name: "Disable mobile app" }).click();
  await page.locator(".badge", { hasText: "disabled" }).waitFor();
  expect(await status()).toBe(401);
  const { json } = await server.admin("GET", `/audit?target=key:${id}&limit=1`);
  expect(json["items"]).toMatchObject([
    { action: "key.disabled", after: { reason: "leaked in a repository" } },
  ]);
  expect(await page.getByRole("button", { name: "Disable" }).count()).toBe(0);
  expect(await page.locator(":focus").textContent()).toBe("Enable");
  await screenshots("disabled-key");

  await page.getByRole("link", { name: "Keys", exact: true }).first().click();
  await page.getByRole("link", { name: "Disabled 1" }).click();
  await untilAt(page, "/keys?state=disabled");
  await page.getByText("1 key", { exact: true }).waitFor();
  await page.getByLabel("Actions for mobile app").click();
  await page.getByRole("button", { name: "Enable" }).waitFor();
  expect(await look("disabled-keys")).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Enable" }).waitFor({ state: "hidden" });
  await page.getByRole("link", { name: "mobile app" }).click();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Enable mobile app" }).click();
  await page.locator(".badge", { hasText: "active" }).waitFor();
  expect(await status()).toBe(200);

  await page.goto(`${server.adminUrl}/audit?target=key:${id}`);
  for (const action of ["key.disabled", "key.enabled"]) {
    const row = page.getByRole("row").filter({ hasText: action });
    await row.getByText("Console").last().waitFor();
  }
});

test("an action that ends after its dialog was cancelled leaves the next dialog open", async () => {
  const { id } = await server.newKey({ name: "slow" });
  const { page } = await open(`/keys/${id}`);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route("**/disable", async (route) => {
    await released;
    await route.continue();
  });
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Disable slow" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Revoke" }).click();
  release();
  await page.getByText("Disabled slow.").waitFor();
  await page.getByRole("heading", { name: "Revoke slow" }).waitFor();
});

test("a change beyond the rate of the operator is sent again after Retry-After, done once, and shows no error", async () => {
  const { id } = await server.newKey({ name: "patient" });
  const { page } = await open(`/keys/${id}`);
  const sentAt: number[] = [];
  await page.route("**/disable", async (route) => {
    sentAt.push(performance.now());
    const body = {
      code: "too_many_requests",
      message: "Too many requests of this operator at once. Retry after 1 second.",
      status: 429,
    };
    if (sentAt.length > 1) await route.continue();
    else await route.fulfill({ status: 429, headers: { "Retry-After": "1" }, json: body });
  });
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Disable patient" }).click();
  await page.getByText("Disabled patient.").waitFor();
  const [first = 0, second = 0, ...others] = sentAt;
  expect(second - first).toBeGreaterThan(990);
  expect(others).toEqual([]);
  expect(await page.getByText("Too many requests").count()).toBe(0);
  await page.goto(`${server.adminUrl}/audit?target=key:${id}`);
  await page.getByRole("row").filter({ hasText: "key.disabled" }).waitFor();
  expect(await page.getByRole("row").filter({ hasText: "key.disabled" }).count()).toBe(1);
});

test("a banned key is shown as banned, and an unban in the list ends the ban", async () => {
  const limits = { perMinute: 1, perDay: 1 };
  const { id, secret } = await server.newKey({ name: "too eager", plan: "enterprise", limits });
  await server.sendUntil("key_banned", secret);
  const { page } = await open("/keys?state=banned");
  await page.getByRole("link", { name: "too eager" }).waitFor();
  await page.getByLabel("Actions for too eager").click();
  await page.getByRole("button", { name: "Unban" }).click();
  await page.getByRole("button", { name: "Unban" }).last().click();
  await page.getByText("No key is banned").waitFor();
  await page.goto(`${server.adminUrl}/keys/${id}`);
  await page.getByRole("cell", { name: "key.unbanned" }).waitFor();
  await page.getByRole("cell", { name: "key.banned" }).waitFor();
  const after = await server.client(secret, "GET", "/pets");
  expect(after.json["code"]).toBe("rate_limited");

  await server.sendUntil("key_banned", secret);
  await page
    .getByText(
      /^Banned until .*, for the 2nd time in 24 hours: requests get 429\. Its limit .* resets in 23 h\. Last used /,
    )
    .waitFor();
  await page.locator(".plot").getByText("bans 2").waitFor();
  await server.admin("POST", `/keys/${id}/unban`);
});

test("a key that was never used says how to use it, and one that is close to its limit says so first", async () => {
  const limits = { perMinute: 5, perDay: 100 };
  const { id, secret } = await server.newKey({ name: "busy", plan: "enterprise", limits });
  const { page } = await open(`/keys/${id}`);
  const help = page.getByRole("link", { name: "How to send one" });
  await help.waitFor();
  expect(await help.getAttribute("href")).toBe(server.apiUrl.replace(/v1$/, "docs"));
  for (let i = 0; i < 4; i++) await server.client(secret, "GET", "/pets");
  await page.getByText(/^Close to its limit, which resets in .* Last used /).waitFor();
});

test("a limit whose window has closed since the response is not said to be reached, and its bar is empty", async () => {
  const { id, secret } = await server.newKey({ name: "at rest" });
  await server.client(secret, "GET", "/pets");
  const { page } = await open("/settings");
  let leftMs = 3_600_000;
  await page.route(`**/api/keys/${id}`, async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    const minute = { used: 9, limit: 9, resetsAt: new Date(Date.now() + leftMs).toISOString() };
    await route.fulfill({ response, json: { ...json, usage: { ...json.usage, minute } } });
  });
  await page.goto(`${server.adminUrl}/keys/${id}`);
  await page.getByText(/^At its limit: requests get 429, and again 200 in /).waitFor();
  await page.getByText("9 / 9 full").waitFor();
  leftMs = -1_000;
  await page.getByText(/^It works\. Last used /).waitFor();
  await page.getByText("0 / 9").waitFor();
});

test("a key is found by its secret, which never gets into the URL", async () => {
  const { id, secret } = await server.newKey({ name: "to find" });
  const { page } = await open("/keys");
  await page.getByRole("searchbox").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.insertText(secret);
  await page.getByRole("heading", { name: "to find" }).waitFor();
  await untilAt(page, `/keys/${id}`);
  await page.goBack();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  expect(page.url()).not.toContain(secret);
  // Nor does a part of it, or one among other text.
  await page.getByRole("searchbox").fill(`Authorization: Bearer ${secret.slice(0, -1)}`);
  await page.getByText("No key has this secret.").waitFor();
  expect(await page.getByRole("searchbox").inputValue()).toBe("");
  await untilAt(page, "/keys");
});

test("filters, order and search are in the URL: Back and reload keep them", async () => {
  await server.newKey({ name: "searched one", plan: "pro" });
  const { page } = await open("/keys");
  await page.getByLabel("Plan").selectOption("pro");
  await untilAt(page, "/keys?plan=pro");
  await page.getByRole("link", { name: /^Last used/ }).click();
  await untilAt(page, "/keys?plan=pro&sort=lastUsedAt");
  await page.getByRole("searchbox").fill("searched");
  await untilAt(page, "/keys?plan=pro&sort=lastUsedAt&search=searched");
  await page.reload();
  await page.getByText("1 key", { exact: true }).waitFor();
  expect(await page.getByRole("searchbox").inputValue()).toBe("searched");
  await page.getByRole("link", { name: "searched one" }).click();
  await page.getByRole("heading", { name: "searched one" }).waitFor();
  await page.goBack();
  await untilAt(page, "/keys?plan=pro&sort=lastUsedAt&search=searched");
});

test("without any key the list leads to the form that creates one", async () => {
  const { page, look } = await open("/settings");
  await page.route("**/api/keys?*", (route) =>
    route.fulfill({ json: { items: [], total: 0, nextCursor: null } }),
  );
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByText("There are no keys yet").waitFor();
  expect(await page.getByRole("searchbox").count()).toBe(0);
  expect(await look("no-keys")).toEqual([]);
  await page.getByRole("link", { name: "Create key" }).click();
  await page.getByLabel("Name").fill("the first");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByLabel("Secret", { exact: true }).waitFor();
});

test("a list of more than 50 keys has pages, and Back leads to the page before", async () => {
  await Promise.all(
    Array.from({ length: 70 }, (_, i) => server.newKey({ name: `client ${i}`, labels: ["many"] })),
  );
  const { page } = await open("/keys?label=many");
  await page.getByText("50 of 70 keys").waitFor();
  expect(await page.getByRole("row").count()).toBe(51);
  const first = await page.getByRole("row").nth(1).getByRole("link").first().textContent();
  await page.getByRole("link", { name: "Next page" }).click();
  await page.getByRole("link", { name: "First page" }).waitFor();
  await page.getByRole("row").nth(21).waitFor({ state: "detached" });
  expect(await page.getByRole("row").count()).toBe(21);
  await page.goBack();
  await untilAt(page, "/keys?label=many");
  await page.getByRole("row").nth(50).waitFor();
  expect(await page.getByRole("row").nth(1).getByRole("link").first().textContent()).toBe(first);
});

test("a key that does not exist says so, and so does a filter that nothing matches", async () => {
  const { page } = await open("/keys/999999");
  await page.getByRole("heading", { name: "There is no key 999999" }).waitFor();
  await page.getByRole("link", { name: "See all keys" }).click();
  await untilAt(page, "/keys");
  await page.goto(`${server.adminUrl}/keys?plan=gold`);
  await page.getByRole("alert").filter({ hasText: "“Plan” is not valid" }).getByText("It must be").waitFor();
  expect(await page.getByLabel("Plan").inputValue()).toBe("gold");
  await page.goto(`${server.adminUrl}/keys?search=nothing-has-this-name`);
  await page.getByText("No key matches").waitFor();
  await page.goto(`${server.adminUrl}/keys?state=banned&sort=name`);
  await page.getByText("After 3 strikes in a window the key is banned for 5 minutes").waitFor();
});

test("the form of a new key: focus on the name, presets of the expiry, and what is wrong below its field", async () => {
  const { page, look } = await open("/keys");
  await page.getByRole("link", { name: "Create key" }).click();
  await untilTrue(page, "document.activeElement.labels?.[0].textContent === 'Name'");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.locator(".field", { hasText: "Name" }).first().getByText("fill out this field").waitFor();
  await page.keyboard.type("forgetful");
  await page.getByRole("button", { name: "In 90 days" }).click();
  const expiry = new Date(await page.getByLabel("Expires").inputValue()).getTime();
  expect(Math.abs(expiry - Date.now() - 90 * 86_400_000)).toBeLessThan(3_700_000);
  await page.getByLabel("Labels").fill("x".repeat(60));
  await page.getByRole("button", { name: "Create key" }).click();
  await page
    .locator(".field", { hasText: "Labels" })
    .last()
    .getByText("It must be a string of 1 to 50 characters")
    .waitFor();
  expect(await look("key-form-problem")).toEqual([]);
  expect(await page.getByLabel("Name").inputValue()).toBe("forgetful");
});

test("leaving a form with input, or a secret that was not copied, asks first, also by Back", async () => {
  const { page } = await open("/keys");
  const questions: string[] = [];
  let answer = false;
  const onDialog = async (dialog: Dialog) => {
    questions.push(dialog.message());
    await (answer ? dialog.accept() : dialog.dismiss());
  };
  page.on("dialog", onDialog);
  await page.getByRole("link", { name: "Create key" }).click();
  await page.getByLabel("Name").fill("not yet");
  await page.getByRole("link", { name: "Audit" }).click();
  await page.goBack();
  await untilAt(page, "/keys/new");
  expect(await page.getByLabel("Name").inputValue()).toBe("not yet");
  expect(questions).toEqual(Array(2).fill("What you typed is not saved. Leave this page?"));
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByLabel("Secret", { exact: true }).waitFor();
  await page.goBack();
  await untilAt(page, "/keys/new");
  expect(questions.at(-1)).toStartWith("You have not copied the secret");
  expect(await page.getByLabel("Secret", { exact: true }).isVisible()).toBe(true);
  answer = true;
  await page.goBack();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await untilAt(page, "/keys");
  page.off("dialog", onDialog);
});

test("a reload asks only while a form has input that is not saved", async () => {
  const { page } = await open("/keys/new");
  const asked: string[] = [];
  const onDialog = async (dialog: Dialog) => {
    asked.push(dialog.type());
    await dialog.dismiss();
  };
  page.on("dialog", onDialog);
  await page.getByLabel("Name").click();
  await page.reload();
  expect(asked).toEqual([]);
  await page.getByLabel("Name").click();
  await page.keyboard.type("not yet");
  await page.evaluate("location.reload()");
  await until(() => asked.length > 0, 5_000);
  expect(asked).toEqual(["beforeunload"]);
  expect(await page.getByLabel("Name").inputValue()).toBe("not yet");
  await page.getByLabel("Name").fill("");
  await page.reload();
  expect(asked).toHaveLength(1);
  page.off("dialog", onDialog);
});

test("one row that the page does not know hides no other, and is counted until another page is shown", async () => {
  const { id, secret } = await server.newKey({ name: "half known" });
  expect((await server.client(secret, "GET", "/pets")).status).toBe(200);
  const { page } = await open("/settings");
  let isHeld = false;
  const [held, leftThePage] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route("**/api/keys/*/usage?*", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    const row = { start: json.since, operation: "listPets", admitted: -1, limited: 0, banned: 0, errors: 0 };
    if (isHeld) {
      held.resolve();
      await leftThePage.promise;
    }
    await route.fulfill({ response, json: { ...json, items: [row, ...json.items] } });
  });
  await page.goto(`${server.adminUrl}/keys/${id}`);
  await page.getByRole("table", { name: "Requests by operation" }).getByText("listPets").waitFor();
  const banner = page.getByText("1 row is left out: this release cannot read it.");
  await banner.waitFor();
  // The page asks again every two seconds. The last response arrives when another page is shown.
  isHeld = true;
  await held.promise;
  await page.getByRole("link", { name: "Pets", exact: true }).click();
  await banner.waitFor({ state: "detached" });
  const late = page.waitForResponse("**/api/keys/*/usage?*");
  leftThePage.resolve();
  await late;
  await page.waitForResponse("**/api/pets?*");
  expect(await banner.count()).toBe(0);
});

test("a key that expires soon says so, and its history has the figures of the period before", async () => {
  const soon = new Date(Date.now() + 5.5 * 86_400_000).toISOString();
  const { id, secret } = await server.newKey({ name: "on its way out", expiresAt: soon });
  expect((await server.client(secret, "GET", "/pets")).status).toBe(200);
  const { page } = await open("/keys?search=on+its+way");
  await page.getByRole("row", { name: "on its way out" }).getByText("expires in 5 d").waitFor();
  await page.route("**/api/keys/*/usage?*", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    const isEarlier = Date.parse(json.until) < Date.now() - 86_400_000;
    const row = { start: json.since, operation: "listPets", admitted: 7, limited: 3, banned: 0, errors: 0 };
    await route.fulfill({ response, json: isEarlier ? { ...json, items: [row] } : json });
  });
  await page.goto(`${server.adminUrl}/keys/${id}`);
  await page.getByText("−86 %, 7 before").waitFor();
  await page.locator(".stat", { hasText: "limited" }).getByText("−100 %, 3 before").waitFor();
});

test("the bars of a key's history stay where they are when the theme changes", async () => {
  const { id, secret } = await server.newKey({ name: "in the dark" });
  expect((await server.client(secret, "GET", "/pets")).status).toBe(200);
  const { page } = await open(`/keys/${id}`);
  await page.locator(".series-name").getByText("success").waitFor();
  const placeOf = () => page.evaluate<string>("document.querySelector('.series-name').style.left");
  const before = await placeOf();
  for (const colorScheme of ["dark", "light"] as const) {
    // Names are shown anew with each drawing.
    await page.evaluate("document.querySelector('.series-name').classList.add('earlier')");
    await page.emulateMedia({ colorScheme });
    await page.locator(".series-name.earlier").waitFor({ state: "detached" });
    expect(await placeOf()).toBe(before);
  }
});

test("the keys of a state are one click away and counted, and the overview names keys that are about to expire", async () => {
  const { id } = await server.newKey({ name: "revoked one", owner: "counted" });
  await server.admin("POST", `/keys/${id}/revoke`);
  await server.newKey({ name: "active one", owner: "counted" });
  const { page } = await open("/keys?search=counted");
  const tabs = page.getByRole("navigation", { name: "State" });
  await tabs.getByText("All 2").waitFor();
  expect(await tabs.innerText()).toBe("All 2\nActive 1\nBanned 0\nDisabled 0\nRevoked 1");
  // Revoked keys are last.
  await page.getByRole("row").nth(2).getByRole("link", { name: "revoked one" }).waitFor();
  await tabs.getByText("Revoked 1").click();
  await untilAt(page, "/keys?search=counted&state=revoked");
  await page.getByText("1 key", { exact: true }).waitFor();
  const heading = page.getByRole("columnheader", { name: "Key" });
  expect(await heading.innerText()).toBe("Key ↕");

  const expiresAt = new Date(Date.now() + 6 * 86_400_000).toISOString();
  await server.newKey({ name: "ends soon", expiresAt });
  await page.goto(`${server.adminUrl}/`);
  await page.getByRole("link", { name: /[12] keys? about to expire/ }).click();
  await untilAt(page, "/keys?expires=7");
  await page.getByRole("link", { name: "ends soon" }).waitFor();
});
