import { expect } from "bun:test";
import { test, untilTrue } from "./browser.ts";
import { consoleFixture, showPage, TOKEN, untilAt } from "./console-fixture.ts";

const { server, browser, open } = await consoleFixture({ strikes: 3, graceMs: 0 });
/** All pages are shown in it, so that the console and axe are loaded once. */
const { page, look, takeProblems } = await browser.open(server.adminUrl);

const LONG = `${"قط كبير جدا 🐈‍⬛ <script>alert(1)</script> ".repeat(40)}`;
const nameOf = (path: string) => path.replace(/^\//, "").replaceAll(/[/?=&]/g, "-") || "overview";

async function expectNoFaults(kind: string, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await showPage(page, path);
    // While a response is late, the page is dimmed. The overview chooses its range when it knows the server.
    await untilTrue(
      page,
      `!document.querySelector(".lost main, .stale") && !document.querySelector(".attention:not(:has(.health))")`,
    );
    expect([path, ...(await look(`${kind}-${nameOf(path)}`))]).toEqual([path]);
    expect([path, ...takeProblems()]).toEqual([path]);
  }
}

test("pages of a new server have no violations, no console errors and no request elsewhere, and fit every screen", async () => {
  await page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
  expect(await look("sign-in")).toEqual([]);
  await page.getByLabel("Your token").fill(TOKEN);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  // The others look alike with data, as in the next test.
  await expectNoFaults("new", ["/", "/keys/new", "/plans", "/pets", "/orders", "/settings"]);
});

test("the same with keys of every kind, long and hostile names, a deprecated call and a ban", async () => {
  const { secret } = await server.newKey({
    name: "mobile app",
    owner: "mobile@example.com",
    labels: ["eu", "mobile"],
  });
  await server.newKey({
    name: [...LONG].slice(0, 100).join("").trim(),
    notes: LONG.slice(0, 500),
    plan: "free",
  });
  const limits = { perMinute: 2, perDay: 100 };
  const eager = await server.newKey({ name: "too eager", plan: "enterprise", limits, access: "read" });
  await server.sendUntil("key_banned", eager.secret);
  for (let i = 0; i < 40; i++) await server.client(secret, "GET", "/pets");
  await server.client(secret, "GET", "/pets/1");
  const pet = { name: [...LONG].slice(0, 1_024).join(""), categoryId: 7, status: "available" };
  const { json } = await server.client(secret, "POST", "/pets", pet);
  const petId = String(json["id"]);
  await server.client(secret, "POST", "/store/orders", `{"petId":${petId}}`);
  await server.newOperator("ann", "admin");
  await server.newOperator(`${"long.".repeat(10)}@example.com`, "support");
  await server.newOperator("prometheus", "metrics");
  await server.admin("POST", "/operators/2/revoke", { reason: "left the team" });
  const expiresAt = new Date(Date.now() + 3.5 * 86_400_000).toISOString();
  await server.admin("PATCH", "/operators/3", { expiresAt });
  await server.admin("POST", "/operators/4/rotate", { overlapSeconds: 600 });
  const keys = ["/keys", "/keys/2", "/keys/3/edit", "/keys/4"];
  await expectNoFaults("busy", [...keys, `/pets/${petId}`, "/orders/1", "/audit", "/operators"]);
  await showPage(page, "/");
  // The requests are there a few seconds later.
  await page.getByRole("row", { name: "mobile app" }).waitFor();
  await page.getByText(/^p50 \d/).waitFor();
  await expectNoFaults("busy", ["/"]);
});

test("dialogs have no violations either", async () => {
  await showPage(page, "/keys/2");
  for (const action of ["Rotate secret", "Disable", "Revoke"]) {
    await page.getByRole("button", { name: action }).click();
    await page.getByRole("dialog").waitFor();
    expect(await look(`dialog-${nameOf(action)}`)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await page.evaluate("document.activeElement.textContent")).toBe(action);
  }
  await page.getByRole("button", { name: "Rotate secret" }).click();
  await page.getByRole("button", { name: "Rotate secret" }).last().click();
  await page.getByLabel("Secret", { exact: true }).waitFor();
  expect(await look("dialog-secret")).toEqual([]);
  await page.reload();
  await showPage(page, "/operators");
  await page.getByRole("button", { name: "Create operator" }).click();
  await page.getByRole("dialog").waitFor();
  expect(await look("dialog-create-operator")).toEqual([]);
  await page.keyboard.press("Escape");
  for (const action of ["Edit", "Rotate token", "Revoke"]) {
    await page.getByRole("button", { name: "Actions for prometheus" }).click();
    await page.getByRole("button", { name: action, exact: true }).click();
    await page.getByRole("dialog").waitFor();
    expect(await look(`dialog-operator-${nameOf(action)}`)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  await showPage(page, "/settings");
  await page.getByRole("button", { name: "Sign out everywhere" }).click();
  await page.getByRole("dialog").waitFor();
  expect(await look("dialog-sign-out")).toEqual([]);
  await page.keyboard.press("Escape");
  await showPage(page, "/plans");
  for (const button of ["Edit Free", "Edit ban rules"]) {
    await page.getByRole("button", { name: button }).click();
    await page.getByRole("dialog").waitFor();
    expect(await look(`dialog-${nameOf(button)}`)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  expect(takeProblems()).toEqual([]);
});

test("the console works with Tab and Enter alone", async () => {
  const { page } = await open("/");
  await page.getByText("Serving").waitFor();
  await page.evaluate("document.activeElement.blur()");
  await page.keyboard.press("Tab");
  expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content");
  for (let i = 0; i < 3; i++) await page.keyboard.press("Tab");
  expect(await page.evaluate("document.activeElement.textContent")).toBe("Keys");
  await page.keyboard.press("Enter");
  await untilAt(page, "/keys");
  await untilTrue(page, "document.activeElement.tagName === 'H1'");
  await page.keyboard.press("Tab");
  await untilTrue(page, "document.activeElement.textContent === 'Create key'");
});

test("with forced colors the navigation shows which page it is", async () => {
  const { page } = await open("/keys");
  const linesOf = `[...document.querySelectorAll(".navigation a")].map((link) => getComputedStyle(link).borderBottomColor)`;
  await page.emulateMedia({ forcedColors: "active" });
  const lines: string[] = await page.evaluate(linesOf);
  const [overview, keys, ...others] = lines;
  expect(keys).not.toBe(overview);
  expect(new Set([overview, ...others]).size).toBe(1);
  await page.emulateMedia({ forcedColors: "none" });
});
