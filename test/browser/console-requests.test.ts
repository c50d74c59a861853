import { expect } from "bun:test";
import { bearer } from "../bearer.ts";
import { test } from "./browser.ts";
import { consoleFixture, untilAt } from "./console-fixture.ts";

const { server, open, failOnProblems } = await consoleFixture({ strikes: 3, graceMs: 0 });
failOnProblems();

test("requests are shown as they arrive, are found by what they have and by their id, and links lead to their moment", async () => {
  const { page, look, screenshots } = await open("/requests");
  await page.getByText("No requests since the server started").waitFor();
  expect(await look("requests-empty")).toEqual([]);

  const shop = await server.newKey({ name: "shop" });
  const limits = { perMinute: 2, perDay: 100 };
  const eager = await server.newKey({ name: "too eager", plan: "enterprise", limits });
  const headers = {
    ...bearer(shop.secret),
    "X-Request-Id": "my-own-id",
    "User-Agent": `${"shop/2.1 ".repeat(30)}`,
  };
  const long = `${server.apiUrl}/${"very-long-path/".repeat(40)}`;
  expect((await fetch(long, { headers })).status).toBe(404);
  await server.sendUntil("key_banned", eager.secret);
  for (let i = 0; i < 60; i++) await server.client(shop.secret, "GET", `/pets/${i}`);
  // The page shows it without a reload.
  await page.getByRole("link", { name: "GET /v1/pets/59" }).waitFor();
  await screenshots("requests-many");
  await page.getByRole("link", { name: "Next page" }).click();
  await page.getByRole("link", { name: /very-long-path/ }).waitFor();
  expect(await look("requests-long")).toEqual([]);

  await page.goto(`${server.adminUrl}/requests?since=never`);
  await page.getByRole("alert").filter({ hasText: "“From” is not valid" }).waitFor();
  await page.goto(`${server.adminUrl}/requests?cursor=never`);
  await page.getByRole("alert").filter({ hasText: "“Cursor” is not valid" }).waitFor();
  await page.getByRole("link", { name: "Clear the filters" }).click();
  await untilAt(page, "/requests");
  await page.getByRole("textbox", { name: "Key" }).fill("shop");
  await page.getByText("It must be a decimal integer").waitFor();
  expect(await page.getByRole("row").count()).toBe(0);
  // What says so leads out; the filters have no second link.
  expect(await page.getByRole("link", { name: /^Clear/ }).allInnerTexts()).toEqual(["Clear the filters"]);
  await screenshots("requests-wrong-filter");
  await page.goto(`${server.adminUrl}/requests`);
  await page.getByLabel("Status").selectOption("429");
  await untilAt(page, "/requests?status=429");
  // The status and its code are one; the message is on hover.
  await page.getByText("429 key_banned").first().waitFor();
  await page
    .getByTitle(/^This API key is temporarily banned because/)
    .first()
    .waitFor();
  await page.getByText("too eager").first().waitFor();
  expect(await page.getByRole("link", { name: "GET /v1/pets/59" }).count()).toBe(0);
  await page.getByRole("textbox", { name: "Key" }).fill(`${shop.id}`);
  await page.getByText("No request matches").waitFor();
  await page.getByRole("link", { name: "Clear the filters" }).click();
  await page.getByLabel("Last").selectOption("5 minutes");
  await untilAt(page, "/requests?last=5");
  await page.getByRole("link", { name: "GET /v1/pets/59" }).waitFor();
  await page.getByText("More filters").click();
  await page.getByLabel("To", { exact: true }).fill("2001-02-03T12:00:30");
  await page.getByText("No request matches").waitFor();
  const to = new URL(page.url()).searchParams.get("until") ?? "";
  expect(await page.evaluate(`Date.parse("${to}") === new Date(2001, 1, 3, 12, 0, 30).getTime()`)).toBe(true);
  await page.getByRole("link", { name: "Clear the filters" }).click();

  await page.keyboard.press("/");
  await page.keyboard.type("my-own-id");
  await page.getByText("Requests of its key around that time").waitFor();
  await page.getByText("not_found").last().waitFor();
  expect(await look("requests-one")).toEqual([]);
  await page.getByRole("link", { name: "Requests of its key around that time" }).click();
  await page.getByRole("row").nth(1).waitFor();

  // A request id in the search of keys, a ban in the audit trail, the page of a key, a point of a plot.
  await page.goto(`${server.adminUrl}/keys?search=my-own-id`);
  await page.getByRole("link", { name: "the request with this id" }).click();
  await untilAt(page, "/requests?requestId=my-own-id");
  await page.goto(`${server.adminUrl}/audit?action=key.banned`);
  await page.getByTitle("The requests of that moment").click();
  await page.getByText("key_banned").first().waitFor();
  expect(new URL(page.url()).searchParams.get("keyId")).toBe(`${eager.id}`);
  await page.goto(`${server.adminUrl}/keys/${eager.id}`);
  await page.getByRole("link", { name: "Its requests" }).click();
  await untilAt(page, `/requests?keyId=${eager.id}&status=429`);
  await page.goto(server.adminUrl);
  await page.locator(".plot-area").first().click();
  await page.waitForURL("**/requests?since=*");
  await page.getByText("No request matches").or(page.getByRole("row").nth(1)).first().waitFor();
  const { searchParams } = new URL(page.url());
  expect(Date.parse(searchParams.get("until") ?? "") - Date.parse(searchParams.get("since") ?? "")).toBe(
    5_000,
  );
});

test("without a request log the page says so, and does not say that requests appear", async () => {
  const { page } = await open("/plans");
  const problem = "the request log is off; restart the server without --request-log 0 to turn it on";
  await page.route("**/api/requests?*", async (route) => {
    const { servers } = await (await route.fetch()).json();
    const off = { ...Object(servers)[0], problem, since: null };
    await route.fulfill({ json: { items: [], nextCursor: null, servers: [off] } });
  });
  await page.getByRole("link", { name: "Requests" }).click();
  const reason = page.locator(".empty", { hasText: "The request log is off" });
  await reason.getByText("Restart the server without --request-log 0").waitFor();
  expect(await page.locator(".empty, [role=status].notice").count()).toBe(1);
});
