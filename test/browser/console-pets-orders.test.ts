import { expect, test } from "bun:test";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";
import { isObject, untilAt } from "./console-server.ts";

const fixture = consoleFixture();

async function newPet(secret: string, name: string, rest = '"categoryId":9007199254740993'): Promise<string> {
  const { json } = await fixture.server.client(
    secret,
    "POST",
    "/pets",
    `{"name":${JSON.stringify(name)},${rest}}`,
  );
  return isObject(json) ? String(json.id) : "";
}

test(
  "a pet is corrected: clients see the new name and category at once, exact to the last digit",
  async () => {
    const { secret } = await fixture.server.newKey({ name: "shop" });
    const id = await newPet(secret, "Rx");
    expect((await fixture.server.client(secret, "GET", "/pets")).status).toBe(200);
    const opened = await fixture.open("/pets");
    const { page } = opened;
    await page.getByText("9007199254740993").waitFor();
    await page.getByRole("link", { name: "Rx" }).click();
    await page.getByLabel("Name").fill("Rex");
    await page.getByLabel("Category").fill("-9223372036854775808");
    await page.getByRole("radio", { name: "Sold" }).check();
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByRole("heading", { name: "Rex" }).waitFor();
    const { json } = await fixture.server.client(secret, "GET", `/pets/${id}`);
    expect(json).toMatchObject({ name: "Rex", categoryId: -9_223_372_036_854_775_808n, status: "sold" });
    await page.getByText("pet.updated").waitFor();
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "a pet is deleted after its name was typed",
  async () => {
    const { secret } = await fixture.server.newKey({ name: "shop" });
    const id = await newPet(secret, "Bello");
    const opened = await fixture.open(`/pets/${id}`);
    const { page } = opened;
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByLabel("Confirm").fill("Bello");
    await page.getByRole("button", { name: "Delete Bello" }).click();
    await untilAt(page, "/pets");
    expect((await fixture.server.client(secret, "GET", `/pets/${id}`)).status).toBe(404);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "an order is completed: its pet is sold, and a pet with orders says why it cannot be deleted",
  async () => {
    const { id: keyId, secret } = await fixture.server.newKey({ name: "shop" });
    const petId = await newPet(secret, "Luna");
    const { json } = await fixture.server.client(secret, "POST", "/store/orders", `{"petId":${petId}}`);
    const orderId = isObject(json) ? String(json.id) : "";
    const opened = await fixture.open(`/orders?keyId=${keyId}`);
    const { page } = opened;
    await page.getByRole("link", { name: orderId, exact: true }).first().click();
    await page.getByRole("button", { name: "Complete" }).click();
    await page.getByText("becomes sold").waitFor();
    await page.getByLabel("Confirm").fill(`order ${orderId}`);
    await page.getByRole("button", { name: `Complete order ${orderId}` }).click();
    await page.locator(".badge", { hasText: "completed" }).first().waitFor();
    const pet = await fixture.server.client(secret, "GET", `/pets/${petId}`);
    expect(pet.json).toMatchObject({ status: "sold" });

    await page.goto(`${fixture.server.adminUrl}/pets/${petId}`);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByLabel("Confirm").fill("Luna");
    await page.getByRole("button", { name: "Delete Luna" }).click();
    await page.getByRole("alert").filter({ hasText: /order/ }).waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "the audit trail is filtered by action, actor and target, and links to what was changed",
  async () => {
    const { id } = await fixture.server.newKey({ name: "audited" });
    await fixture.server.admin("PATCH", `/keys/${id}`, { plan: "pro" });
    const opened = await fixture.open("/audit");
    const { page } = opened;
    await page.getByLabel("Action").selectOption("key.updated");
    await page.getByLabel("Who").selectOption("admin API");
    await page.getByLabel("Target").fill(`key:${id}`);
    await untilAt(page, `/audit?action=key.updated&actor=admin+API&target=key%3A${id}`);
    const table = page.getByRole("table", { name: "Audit trail" });
    await table.getByText("business").waitFor();
    expect(await table.getByRole("row").count()).toBe(2);
    await table.getByRole("link", { name: `key ${id}` }).click();
    await page.getByRole("heading", { name: "audited" }).waitFor();
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "settings show the effective value and where it comes from, and a path without a page says so",
  async () => {
    const opened = await fixture.open("/settings?search=admin-address");
    const { page } = opened;
    const row = page.getByRole("row").filter({ hasText: "--admin-address" });
    await row.getByText("Flag").waitFor();
    await row.getByText(new URL(fixture.server.adminUrl).host).waitFor();
    await page.getByRole("radio", { name: "Dark" }).check();
    expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
    await page.goto(`${fixture.server.adminUrl}/keys/x`);
    await page.getByText("There is no such page").waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
