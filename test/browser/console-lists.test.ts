import { expect, test } from "bun:test";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";
import { untilAt } from "./console-server.ts";

const fixture = consoleFixture();

test(
  "without any key the list is the form that creates one",
  async () => {
    const opened = await fixture.open("/settings");
    const { page } = opened;
    await page.route("**/api/keys?*", (route) =>
      route.fulfill({ json: { items: [], total: 0, nextCursor: null } }),
    );
    await page.getByRole("link", { name: "Keys", exact: true }).click();
    await page.getByText("There are no keys yet").waitFor();
    await page.getByLabel("Name").fill("the first");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel("Secret", { exact: true }).waitFor();
    await page.unroute("**/api/keys?*");
    await page.waitForResponse(/\/api\/keys\?/);
    await page.waitForResponse(/\/api\/server/);
    expect(await page.getByLabel("Secret", { exact: true }).isVisible()).toBe(true);
    expect(opened.takeProblems()).toEqual([]);
    expect(await opened.look("no-keys-secret")).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a list of more than 50 keys has pages, and Back leads to the page before",
  async () => {
    await Promise.all(
      Array.from({ length: 70 }, (_, i) => fixture.server.newKey({ name: `client ${i}`, labels: ["many"] })),
    );
    const opened = await fixture.open("/keys?label=many");
    const { page } = opened;
    await page.getByText("70 keys").waitFor();
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
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a key that does not exist says so, and so does a filter that nothing matches",
  async () => {
    const opened = await fixture.open("/keys/999999");
    const { page } = opened;
    await page.getByRole("alert").filter({ hasText: "999999" }).waitFor();
    await page.goto(`${fixture.server.adminUrl}/keys?search=nothing-has-this-name`);
    await page.getByText("No key matches").waitFor();
    await page.goto(`${fixture.server.adminUrl}/keys?state=banned`);
    await page.getByText("10 strikes in a window ban the key for 5m").waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
