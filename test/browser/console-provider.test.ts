import { afterAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { providerFlags, startIdentityProvider } from "../../trials/harness/identity-provider.ts";
import { consoleFixture } from "./console-fixture.ts";

const provider = await startIdentityProvider();
afterAll(() => provider[Symbol.asyncDispose]());
const { host } = new URL(provider.issuer);
const { server, browser } = await consoleFixture({}, providerFlags(provider));

/** Logs in at the provider, whose page has a form of its own. */
async function logIn(page: Page, login: string): Promise<void> {
  await page.getByRole("button", { name: `Sign in with ${host}` }).click();
  await page.locator("input[name=login]").fill(login);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
}

// It is the first one: the discovery document is kept for ten seconds.
test("while the provider is away the page says so", async () => {
  await provider.goAway();
  const opened = await browser.open(server.adminUrl);
  await opened.page.getByRole("button", { name: `Sign in with ${host}` }).click();
  await opened.page
    .getByRole("alert")
    .filter({ hasText: `Nobody can sign in with ${host} now` })
    .waitFor();
  expect(await opened.look("provider-away")).toEqual([]);
  provider.comeBack();
  await opened.close();
});

test("a person signs in with the provider, returns to the page that they came for, and signs out", async () => {
  const opened = await browser.open(`${server.adminUrl}/audit?action=operator.created`);
  const { page } = opened;
  await page.getByRole("button", { name: `Sign in with ${host}` }).waitFor();
  expect(await opened.look("provider-sign-in")).toEqual([]);
  expect(opened.takeProblems()).toEqual([]);
  await logIn(page, "ann");
  await page.getByRole("heading", { name: "Audit" }).waitFor();
  // Neither the code nor the state stays in the address bar or in the history.
  expect(page.url()).toBe(`${server.adminUrl}/audit?action=operator.created`);
  expect(await page.evaluate("sessionStorage.length")).toBe(0);
  await page.getByRole("banner").getByText("ann@example.com").waitFor();
  await page.goto(`${server.adminUrl}/operators`);
  await page.getByRole("row", { name: "ann@example.com" }).waitFor();
  // Nobody has made a token for a person of the provider.
  const cells = page.getByRole("row").filter({ hasText: "signs in with the provider" }).getByRole("cell");
  expect(await cells.nth(4).textContent()).toBe("–");
  expect(await opened.look("provider-operators")).toEqual([]);
  await page.goto(`${server.adminUrl}/settings`);
  await page.getByRole("button", { name: "Log in on the command line" }).click();
  await page.getByRole("button", { name: "Make a code" }).click();
  const code = await page.getByRole("textbox", { name: "Code" }).inputValue();
  expect(code).toMatch(/^pet_code_\w{43}$/);
  expect(await opened.look("provider-code")).toEqual([]);
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Close without copying" }).click();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("button", { name: `Sign in with ${host}` }).waitFor();
  await opened.close();
});

test("a person without a role sees why; a token signs in on the same page", async () => {
  const opened = await browser.open(server.adminUrl);
  const { page } = opened;
  await logIn(page, "eve");
  await page.getByRole("alert").filter({ hasText: "No rule of --oidc-role grants you a role" }).waitFor();
  expect(await opened.look("provider-refused")).toEqual([]);
  await page.getByText("Use a token instead").click();
  await page.getByLabel("Your token").fill(await server.newOperator("program", "viewer"));
  expect(await opened.look("provider-token")).toEqual([]);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await opened.close();
});

test("the response for another tab signs nobody in, and neither does an invented one", async () => {
  // The attacker does not follow the redirect, and sends the URL to somebody else.
  const begun = await fetch(`${server.adminUrl}/api/session/provider`, { method: "POST" });
  const response = await provider.logIn(String(Object(await begun.json()).url), "ann");
  const victim = await browser.open(server.adminUrl);
  for (const query of [response, "?code=a&state=b"]) {
    await victim.page.goto(`${server.adminUrl}/${query}`);
    await victim.page.getByRole("alert").filter({ hasText: "This tab did not begin this sign-in" }).waitFor();
    expect(victim.page.url()).toBe(`${server.adminUrl}/`);
  }
  await victim.close();
});
