import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { test } from "./browser.ts";
import { showPage, consoleFixture } from "./console-fixture.ts";

const { server, browser, open, failOnProblems } = await consoleFixture();
failOnProblems();
const { id, secret } = await server.newKey({ name: "shop" });
const { json: pet } = await server.client(secret, "POST", "/pets", { name: "Rex", categoryId: 1 });
const petId = String(pet["id"]);
await server.client(secret, "POST", "/store/orders", { petId: Number(petId) });

/** The buttons, links and forms that do something, by page. */
const CONTROLS: Readonly<Record<string, Readonly<Record<string, "support" | "admin">>>> = {
  "/keys": { "Create key": "admin", "Actions for shop": "support" },
  [`/keys/${id}`]: { Edit: "admin", "Rotate secret": "support", Disable: "support", Revoke: "admin" },
  "/plans": { "Edit Free": "admin", "Edit ban rules": "admin" },
  "/pets": { "Add pet": "admin" },
  [`/pets/${petId}`]: { "Save changes": "support", Delete: "admin" },
  "/orders/1": { Complete: "support", "Cancel order": "support" },
  "/operators": { "Create operator": "admin", "Actions for viewer-1": "admin" },
};
const LEVELS = ["viewer", "support", "admin"] as const;

async function signInWith(page: Page, token: string): Promise<void> {
  await page.getByLabel("Your token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Main" }).waitFor();
}

const namesOf = async (page: Page) => {
  const controls = page.locator("main").locator("button, a.button");
  const names = await controls.evaluateAll((elements) =>
    elements.map((element) => element.getAttribute("aria-label") ?? element.textContent ?? ""),
  );
  return new Set(names.map((name) => name.trim()));
};

await server.newOperator("viewer-1", "metrics");

test.each(LEVELS)("%s sees what the role allows, and nothing else", async (role) => {
  const { page, takeProblems, close } = await browser.open(server.adminUrl);
  await signInWith(page, await server.newOperator(`a-${role}`, role));
  for (const [path, controls] of Object.entries(CONTROLS)) {
    await showPage(page, path);
    const shown = await namesOf(page);
    const expected = Object.entries(controls).filter(
      ([, least]) => LEVELS.indexOf(role) >= LEVELS.indexOf(least),
    );
    const found = Object.keys(controls).filter((name) => shown.has(name));
    expect([path, found]).toEqual([path, expected.map(([name]) => name)]);
  }
  // Everybody sees the values of a pet.
  await showPage(page, `/pets/${petId}`);
  await page.locator("dt", { hasText: "Category" }).waitFor();
  await showPage(page, "/keys/new");
  const isForm = (await page.getByRole("button", { name: "Create key" }).count()) > 0;
  expect(isForm).toBe(role === "admin");
  if (role !== "admin") await page.getByText("Your role does not allow it").waitFor();
  await showPage(page, "/settings");
  for (const place of ["banner", "main"] as const)
    await page.getByRole(place).getByText(`a-${role}`, { exact: true }).waitFor();
  expect(takeProblems()).toEqual([]);
  await close();
});

test("metrics cannot sign in", async () => {
  const { page, close } = await browser.open(server.adminUrl);
  await page.getByLabel("Your token").fill(await server.newOperator("prometheus", "metrics"));
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "This needs the role viewer" }).waitFor();
  await close();
});

test("an admin creates an operator, whose token is shown once and signs in; rotating and revoking end it", async () => {
  const { page } = await open("/operators");
  await page.getByRole("button", { name: "Create operator" }).click();
  await page.getByLabel("Name").fill("token");
  await page.getByRole("radio", { name: "Support" }).check();
  const create = page.getByRole("dialog").getByRole("button", { name: "Create operator" });
  await create.click();
  await page.getByText("in lower case, other than token and server").waitFor();
  await page.getByLabel("Name").fill("eve@example.com");
  await create.click();
  const token = await page.getByLabel("Token", { exact: true }).inputValue();
  expect(token).toMatch(/^pet_admin_[0-9A-Za-z]{43}$/);
  const done = page.getByRole("button", { name: "Done" });
  await done.click();
  await page.getByText("You have not copied the token.").waitFor();
  await page.getByRole("button", { name: "Close without copying" }).click();
  await page.getByRole("row").filter({ hasText: "eve@example.com" }).getByText("active").waitFor();
  expect(await page.content()).not.toContain(token);

  const other = await browser.open(server.adminUrl);
  await signInWith(other.page, token);
  await page.getByRole("button", { name: "Actions for eve@example.com" }).click();
  await page.getByRole("button", { name: "Rotate token" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Rotate token" }).click();
  const next = await page.getByLabel("Token", { exact: true }).inputValue();
  await other.page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
  await other.page.getByLabel("Your token").fill(token);
  await other.page.keyboard.press("Enter");
  await other.page.getByRole("alert").filter({ hasText: "The token is wrong" }).waitFor();
  await signInWith(other.page, next);
  await page.getByLabel("Token", { exact: true }).press("Control+c");
  await done.click();

  await page.getByRole("button", { name: "Actions for eve@example.com" }).click();
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByLabel("Reason").fill("left the team");
  await page.getByLabel("Confirm").fill("eve@example.com");
  await page.getByRole("button", { name: "Revoke eve@example.com" }).click();
  await page.getByRole("row").filter({ hasText: "eve@example.com" }).getByText("revoked").waitFor();
  await other.page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
  await other.close();
  await showPage(page, "/audit");
  await page.getByRole("row").filter({ hasText: "operator.revoked" }).getByText("left the team").waitFor();
});

test("an admin changes role and expiry, and pages of the operator follow; an overlap is shown", async () => {
  const { page } = await open("/operators");
  const token = await server.newOperator("fay", "viewer");
  const other = await browser.open(server.adminUrl);
  await signInWith(other.page, token);
  await showPage(other.page, "/keys");
  const create = other.page.getByRole("link", { name: "Create key" });
  expect(await create.count()).toBe(0);
  const row = page.getByRole("row").filter({ hasText: "fay" });
  const act = async (action: string) => {
    await page.getByRole("button", { name: "Actions for fay" }).click();
    await page.getByRole("button", { name: action, exact: true }).click();
  };
  await act("Edit");
  await page.getByRole("radio", { name: "Admin" }).check();
  await page.getByRole("button", { name: "In 30 days" }).click();
  await page.getByRole("button", { name: "Save changes" }).click();
  await row.getByText("Admin", { exact: true }).waitFor();
  await row.getByText("in 29 d").waitFor();
  await create.waitFor();
  await act("Rotate token");
  await page.getByRole("radio", { name: "10 minutes" }).check();
  await page.getByRole("dialog").getByRole("button", { name: "Rotate token" }).click();
  await page.getByText("The earlier tokens work until").waitFor();
  const next = await page.getByLabel("Token", { exact: true }).inputValue();
  await page.getByLabel("Token", { exact: true }).press("Control+c");
  await page.getByRole("button", { name: "Done" }).click();
  await row.getByText("The earlier token ends in").waitFor();
  const session = await browser.open(server.adminUrl);
  await signInWith(session.page, next);
  // The other one is a session of the earlier token.
  const signOut = async (from: Page) => {
    await showPage(from, "/settings");
    await from.getByRole("button", { name: "Sign out everywhere" }).click();
    await from.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
  };
  await signOut(other.page);
  await other.page.getByRole("alert").filter({ hasText: "Use the new token" }).waitFor();
  await signOut(session.page);
  for (const each of [session, other]) {
    await each.page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
    await each.close();
  }
});
