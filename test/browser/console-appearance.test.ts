import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";
import { isObject, untilAt } from "./console-server.ts";

const fixture = consoleFixture(["--ban-strikes", "3", "--ban-grace", "0s"]);
const LONG = `${"قط كبير جدا 🐈‍⬛ <script>alert(1)</script> ".repeat(40)}`;
const PAGES = ["/", "/keys", "/keys/new", "/keys/1", "/pets", "/orders", "/audit", "/settings"];
/** Everything that the page asks for has a response. */
async function loaded(page: Page): Promise<void> {
  await page.locator("h1").waitFor({ state: "attached" });
  await page.getByText("Loading …").first().waitFor({ state: "detached" });
}

const nameOf = (path: string) => path.replace(/^\//, "").replaceAll(/[/?=&]/g, "-") || "overview";

test(
  "every page of a new server has no violations, no console errors and no request elsewhere, and fits every screen",
  async () => {
    const signIn = await fixture.browser.open(fixture.server.adminUrl);
    await signIn.page.getByRole("heading", { name: "Sign in to Petstore" }).waitFor();
    expect(await signIn.look("sign-in")).toEqual([]);
    await signIn.close();
    for (const path of PAGES) {
      const opened = await fixture.open(path);
      await loaded(opened.page);
      expect(await opened.look(`new-${nameOf(path)}`)).toEqual([]);
      expect(opened.takeProblems()).toEqual([]);
      await opened.close();
    }
  },
  TEST_TIMEOUT_MS * 2,
);

test(
  "the same with keys of every kind, long and hostile names, and a ban",
  async () => {
    const { server } = fixture;
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
    for (let i = 0; i < 8; i++) await server.client(eager.secret, "GET", "/pets");
    for (let i = 0; i < 40; i++) await server.client(secret, "GET", "/pets");
    const pet = { name: [...LONG].slice(0, 1_024).join(""), categoryId: 7, status: "available" };
    const created = await server.client(secret, "POST", "/pets", pet);
    const petId = isObject(created.json) ? String(created.json.id) : "";
    await server.client(secret, "POST", "/store/orders", `{"petId":${petId}}`);
    for (const path of [
      "/",
      "/keys",
      "/keys/2",
      "/keys/3/edit",
      "/keys/4",
      `/pets/${petId}`,
      "/orders/1",
      "/audit",
    ]) {
      const opened = await fixture.open(path);
      await loaded(opened.page);
      expect(await opened.look(`busy-${nameOf(path)}`)).toEqual([]);
      expect(opened.takeProblems()).toEqual([]);
      await opened.close();
    }
  },
  TEST_TIMEOUT_MS * 2,
);

test(
  "dialogs have no violations either",
  async () => {
    const opened = await fixture.open("/keys/2");
    const { page } = opened;
    for (const action of ["Roll secret", "Revoke"]) {
      await page.getByRole("button", { name: action }).click();
      await page.getByRole("dialog").waitFor();
      expect(await opened.look(`dialog-${nameOf(action)}`)).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      expect(await page.evaluate("document.activeElement.textContent")).toBe(action);
    }
    await page.getByRole("button", { name: "Roll secret" }).click();
    await page.getByRole("button", { name: "Roll secret" }).last().click();
    await page.getByLabel("Secret", { exact: true }).waitFor();
    expect(await opened.look("dialog-secret")).toEqual([]);
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "the console works with Tab and Enter alone",
  async () => {
    const opened = await fixture.open("/");
    const { page } = opened;
    await page.getByText("requests now").waitFor();
    await page.evaluate("document.activeElement.blur()");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content");
    for (let i = 0; i < 3; i++) await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Keys");
    await page.keyboard.press("Enter");
    await untilAt(page, "/keys");
    await page.waitForFunction("document.activeElement.tagName === 'H1'");
    await page.keyboard.press("Tab");
    await page.waitForFunction("document.activeElement.textContent === 'Find by secret'");
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
