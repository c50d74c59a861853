import { expect, test } from "bun:test";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";
import { untilAt } from "./console-server.ts";

const fixture = consoleFixture();

test(
  "operators see which keys still call a deprecated operation: on the overview, in the list and on the key's page",
  async () => {
    const { server } = fixture;
    const old = await server.newKey({ name: "old mobile app" });
    const current = await server.newKey({ name: "new web shop" });
    expect((await server.client(current.secret, "GET", "/pets")).status).toBe(200);
    const opened = await fixture.open("/");
    const { page } = opened;
    await page.getByRole("link", { name: "new web shop" }).waitFor();
    expect(await page.getByText("Deprecated").count()).toBe(0);

    expect((await server.client(old.secret, "GET", "/pets/1")).status).toBe(404);
    await page.getByText("1 key has called getPet in the last 30 days.").waitFor();
    expect(await opened.look("deprecated-overview")).toEqual([]);
    await page
      .getByRole("paragraph")
      .filter({ hasText: "has called" })
      .getByRole("link", { name: "Show" })
      .click();
    await untilAt(page, "/keys?deprecated=30");
    await page.getByText("1 key", { exact: true }).waitFor();
    expect(await page.getByLabel("Deprecated calls in").inputValue()).toBe("30");
    expect(await page.getByRole("link", { name: "new web shop" }).count()).toBe(0);
    expect(await opened.look("deprecated-keys")).toEqual([]);

    await page.getByRole("link", { name: "old mobile app" }).click();
    const row = page.getByRole("row").filter({ hasText: "getPet" });
    await row.getByText("deprecated").waitFor();
    expect(await opened.look("deprecated-key")).toEqual([]);
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
