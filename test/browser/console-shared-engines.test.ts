import { afterAll, beforeAll, expect, test } from "bun:test";
import { postgresUrl } from "../../harness/postgres.ts";
import { valkeyUrl } from "../../harness/valkey.ts";
import { START_TIMEOUT_MS, TEST_TIMEOUT_MS } from "./console-fixture.ts";
import { ConsoleServer, isObject, statusWithinASecond, TOKEN } from "./console-server.ts";
import { TestBrowser } from "./browser.ts";

let servers: ConsoleServer[] = [];
let browser: TestBrowser;

beforeAll(async () => {
  const storage = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  // On a busy machine Valkey may take longer than the default of 25 ms.
  servers = await Promise.all([0, 1].map(() => ConsoleServer.start([...storage, "--limits-timeout", "1s"])));
  browser = await TestBrowser.start();
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.stop();
  await Promise.all(servers.map((server) => server.stop()));
});

test(
  "two servers on PostgreSQL and Valkey: the numbers add up in the console of either, and a change holds on both",
  async () => {
    const [first, second] = servers;
    if (first === undefined || second === undefined) throw new Error("There are two servers");
    const { id, secret } = await first.newKey({ name: "shared", plan: "pro" });
    for (let i = 0; i < 3; i++) await first.client(secret, "GET", "/pets");
    for (let i = 0; i < 4; i++) await second.client(secret, "GET", "/pets");
    const opened = await browser.open(`${second.adminUrl}/keys/${id}?token=${TOKEN}`);
    const { page } = opened;
    // The windows are in Valkey, the history is written by each server within 5 seconds.
    await page.getByText("7/300").waitFor();
    await page
      .getByRole("row", { name: /listPets/ })
      .getByText("7")
      .waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText("PostgreSQL").waitFor();
    await page.getByText("limits: Valkey").waitFor();
    await page
      .getByRole("row", { name: /shared/ })
      .getByRole("cell", { name: "7", exact: true })
      .waitFor();

    await page.getByRole("link", { name: "shared" }).click();
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByLabel("Confirm").fill("shared");
    await page.getByRole("button", { name: "Revoke shared" }).click();
    await page.locator(".badge", { hasText: "revoked" }).waitFor();
    for (const server of servers) {
      const { json } = await statusWithinASecond(401, () => server.client(secret, "GET", "/pets"));
      expect(isObject(json) && json.code).toBe("invalid_api_key");
    }
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
