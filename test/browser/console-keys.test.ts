import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";
import { isObject, statusWithinASecond, untilAt } from "./console-server.ts";

/** Three requests after the limit ban a key, at once. */
const fixture = consoleFixture(["--ban-strikes", "3", "--ban-grace", "0s"]);
const HOSTILE_NAME = `<script>alert("1")</script> مفتاح 🐕`;

async function create(page: Page, name: string): Promise<string> {
  await page.getByRole("link", { name: "Create key" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByRole("radio", { name: /^Pro/ }).check();
  await page.getByRole("button", { name: "Create key" }).click();
  return page.getByLabel("Secret", { exact: true }).inputValue();
}

test(
  "a key is created, its secret is shown once and selected, and leaving without copying asks once",
  async () => {
    const opened = await fixture.open("/keys");
    const { page } = opened;
    const secret = await create(page, HOSTILE_NAME);
    expect(secret).toMatch(/^pet_live_[0-9A-Za-z]{36}$/);
    expect(await page.evaluate("getSelection().toString()")).toBe(secret);
    const curl = await page.getByLabel("curl command", { exact: true }).textContent();
    expect(curl).toBe(`curl -H "Authorization: Bearer ${secret}" ${fixture.server.apiUrl}/pets`);
    expect((await fixture.server.client(secret, "GET", "/pets")).status).toBe(200);
    await page.keyboard.press("Escape");
    await page.getByText("You have not copied the secret").waitFor();
    await page.getByRole("button", { name: "Close without copying" }).click();
    await page.getByRole("heading", { name: HOSTILE_NAME }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await page.getByText("key.created").waitFor();
    await page.getByText("Console").first().waitFor();
    // The request above is counted.
    await page.getByText("1/300").waitFor();
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "the copy button copies the secret, and then the dialog closes without asking",
  async () => {
    const opened = await fixture.open("/keys");
    const { page } = opened;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const secret = await create(page, "to copy");
    await page.getByRole("button", { name: "Copy secret" }).click();
    await page.getByText("Copied").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(secret);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("heading", { name: "to copy" }).waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a key is edited: name, plan, labels and access hold for clients within a second",
  async () => {
    const { id, secret } = await fixture.server.newKey({ name: "before" });
    const opened = await fixture.open(`/keys/${id}`);
    const { page } = opened;
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Name").fill("after");
    await page.getByRole("radio", { name: /^Enterprise/ }).check();
    await page.getByLabel("Requests per minute").fill("7");
    await page.getByLabel("Requests per day").fill("70");
    await page.getByLabel("Labels").fill("eu, mobile");
    await page.getByRole("radio", { name: /^Read only/ }).check();
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByRole("heading", { name: "after" }).waitFor();
    await page.getByText("Enterprise: 7 a minute, 70 a day").waitFor();
    const { status, json } = await statusWithinASecond(403, () =>
      fixture.server.client(secret, "POST", "/pets", { name: "Rex", categoryId: 7 }),
    );
    expect([status, isObject(json) && json.code]).toEqual([403, "read_only_key"]);
    await page.getByRole("link", { name: "mobile" }).click();
    expect(page.url()).toEndWith("/keys?label=mobile");
    await page.getByText("1 key", { exact: true }).waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a roll with an overlap keeps the earlier secret, and one without needs the name",
  async () => {
    const { id, secret } = await fixture.server.newKey({ name: "to roll" });
    const opened = await fixture.open(`/keys/${id}`);
    const { page } = opened;
    await page.getByRole("button", { name: "Roll secret" }).click();
    await page.getByRole("button", { name: "Roll secret" }).last().click();
    const second = await page.getByLabel("Secret", { exact: true }).inputValue();
    expect(second).not.toBe(secret);
    for (const each of [secret, second])
      expect((await fixture.server.client(each, "GET", "/pets")).status).toBe(200);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Close without copying" }).click();
    expect(await page.getByRole("table", { name: "Secrets" }).getByRole("row").count()).toBe(3);

    await page.getByRole("button", { name: "Roll secret" }).click();
    await page.getByRole("radio", { name: /^None/ }).check();
    const roll = page.getByRole("button", { name: "Roll secret" }).last();
    expect(await roll.isDisabled()).toBe(true);
    await page.getByLabel("Confirm").fill("to roll");
    await roll.click();
    const third = await page.getByLabel("Secret", { exact: true }).inputValue();
    const rejected = await statusWithinASecond(401, () => fixture.server.client(second, "GET", "/pets"));
    expect(rejected.status).toBe(401);
    expect((await fixture.server.client(third, "GET", "/pets")).status).toBe(200);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a key is revoked after its name was typed, with the keyboard alone",
  async () => {
    const { id, secret } = await fixture.server.newKey({ name: "to revoke" });
    const opened = await fixture.open(`/keys/${id}`);
    const { page } = opened;
    await page.getByRole("button", { name: "Revoke" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("fail with 401 within one second").waitFor();
    const revoke = page.getByRole("button", { name: "Revoke to revoke" });
    await page.keyboard.type("to revok");
    expect(await revoke.isDisabled()).toBe(true);
    await page.keyboard.type("e");
    await page.keyboard.press("Enter");
    await page.locator(".badge", { hasText: "revoked" }).waitFor();
    const rejected = await statusWithinASecond(401, () => fixture.server.client(secret, "GET", "/pets"));
    expect(rejected.status).toBe(401);
    expect(await page.getByRole("button", { name: "Revoke" }).count()).toBe(0);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a banned key is shown as banned, and an unban in the list ends the ban",
  async () => {
    const limits = { perMinute: 1, perDay: 100 };
    const { id, secret } = await fixture.server.newKey({ name: "too eager", plan: "enterprise", limits });
    for (let i = 0; i < 6; i++) await fixture.server.client(secret, "GET", "/pets");
    const { json } = await fixture.server.client(secret, "GET", "/pets");
    expect(isObject(json) && json.code).toBe("key_banned");
    const opened = await fixture.open("/keys?state=banned");
    const { page } = opened;
    await page.getByRole("link", { name: "too eager" }).waitFor();
    await page.getByLabel("Actions for too eager").click();
    await page.getByRole("button", { name: "Unban" }).click();
    await page.getByRole("button", { name: "Unban" }).last().click();
    await page.getByText("No key is banned").waitFor();
    await page.goto(`${fixture.server.adminUrl}/keys/${id}`);
    await page.getByRole("cell", { name: "key.unbanned" }).waitFor();
    await page.getByRole("cell", { name: "key.banned" }).waitFor();
    const after = await fixture.server.client(secret, "GET", "/pets");
    expect(isObject(after.json) && after.json.code).toBe("rate_limited");
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a key is found by its secret, which never gets into the URL",
  async () => {
    const { id, secret } = await fixture.server.newKey({ name: "to find" });
    const opened = await fixture.open("/keys");
    const { page } = opened;
    await page.getByRole("searchbox").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.insertText(secret);
    await page.getByRole("heading", { name: "to find" }).waitFor();
    expect(page.url()).toBe(`${fixture.server.adminUrl}/keys/${id}`);
    await page.goBack();
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    expect(page.url()).not.toContain(secret);
    await page.getByRole("button", { name: "Find by secret" }).click();
    await page.getByLabel("Secret", { exact: true }).fill(`${secret.slice(0, -1)}0`);
    await page.getByRole("button", { name: "Find", exact: true }).click();
    await page.getByRole("alert").filter({ hasText: /./ }).waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "filters, order and search are in the URL: Back and reload keep them",
  async () => {
    await fixture.server.newKey({ name: "searched one", plan: "pro" });
    const opened = await fixture.open("/keys");
    const { page } = opened;
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
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
