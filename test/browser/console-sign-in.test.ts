import { expect, test } from "bun:test";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";
import { TOKEN, untilAt } from "./console-server.ts";

const fixture = consoleFixture();

test(
  "the URL that the server prints signs in, keeps the page and its filters, and the token leaves the address bar",
  async () => {
    const opened = await fixture.open("/keys?plan=pro");
    const { page } = opened;
    expect(page.url()).toBe(`${fixture.server.adminUrl}/keys?plan=pro`);
    await page.getByLabel("State").selectOption("active");
    await untilAt(page, "/keys?plan=pro&state=active");
    await page.reload();
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    expect(await page.evaluate("document.cookie")).toBe("");
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "without a session every page is the sign-in page, a wrong token says so, and the right one leads on",
  async () => {
    const opened = await fixture.browser.open(`${fixture.server.adminUrl}/audit`);
    const { page } = opened;
    await page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
    await page.getByLabel("Admin token").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").filter({ hasText: /token/i }).waitFor();
    await page.getByLabel("Admin token").fill(` ${TOKEN} `);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Audit" }).waitFor();
    expect(page.url()).toBe(`${fixture.server.adminUrl}/audit`);
    await page.getByRole("cell", { name: "admin.sign-in-failed" }).first().waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "signing out ends the session",
  async () => {
    const opened = await fixture.open("/settings");
    const { page } = opened;
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
    await page.goto(`${fixture.server.adminUrl}/keys`);
    await page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a URL with a wrong token shows the sign-in page and why",
  async () => {
    const opened = await fixture.browser.open(`${fixture.server.adminUrl}/?token=wrong`);
    const { page } = opened;
    await page.getByRole("alert").filter({ hasText: /token/i }).waitFor();
    expect(page.url()).toBe(`${fixture.server.adminUrl}/`);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
