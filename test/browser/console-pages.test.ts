import { expect } from "bun:test";
import { labelOf } from "../../src/domain/fields.ts";
import { GIVEN_PET_FIELDS, NewPet } from "../../src/domain/pets-and-orders.ts";
import { capitalized } from "../../src/pages/format.ts";
import { objectWith } from "../samples.ts";
import { test, untilTrue } from "./browser.ts";
import { consoleFixture, showPage, untilAt } from "./console-fixture.ts";
import { withServiceValues } from "../pets.ts";

const { server, open, failOnProblems } = await consoleFixture();
failOnProblems();

const { id: keyId, secret } = await server.newKey({ name: "shop" });

async function newPet(name: string): Promise<string> {
  const body = `{"name":"${name}","categoryId":9007199254740993}`;
  const { json } = await server.client(secret, "POST", "/pets", body);
  return String(json["id"]);
}

test("operators see which keys still call a deprecated operation: on the overview, in the list and on the key's page", async () => {
  const old = await server.newKey({ name: "old mobile app" });
  const current = await server.newKey({ name: "new web shop" });
  expect((await server.client(current.secret, "GET", "/pets")).status).toBe(200);
  const { page, screenshots } = await open("/");
  await page.getByRole("link", { name: "new web shop" }).waitFor();
  expect(await page.getByText(/still calls?/).count()).toBe(0);

  expect((await server.client(old.secret, "GET", "/pets/1")).status).toBe(404);
  // The page shows it without a reload.
  const pill = page.getByRole("link", { name: "1 key still calls getPet" });
  await pill.waitFor();
  await screenshots("deprecated-overview");
  await pill.click();
  await untilAt(page, "/keys?deprecated=30");
  await page.getByText("1 key", { exact: true }).waitFor();
  expect(await page.getByLabel("Deprecated calls in").inputValue()).toBe("30");
  expect(await page.getByRole("link", { name: "new web shop" }).count()).toBe(0);

  await page.getByRole("link", { name: "old mobile app" }).click();
  const row = page.getByRole("row").filter({ hasText: "getPet" });
  await row.getByText("deprecated").waitFor();
  // What is zero is no figure, so that the others stand out.
  expect((await row.getByRole("cell").allInnerTexts()).slice(1)).toEqual(["1", "–", "–", "1"]);
});

test("a pet is corrected: clients see the new name and category at once, exact to the last digit", async () => {
  const id = await newPet("Rx");
  expect((await server.client(secret, "GET", "/pets")).status).toBe(200);
  const { page } = await open("/pets");
  await page.getByText("9007199254740993").waitFor();
  await page.getByRole("link", { name: "Rx" }).click();
  await page.getByLabel("Name").fill("Rex");
  await page.getByLabel("Category").fill("-9223372036854775808");
  await page.getByRole("radio", { name: "Sold" }).check();
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { name: "Rex" }).waitFor();
  const { json } = await server.client(secret, "GET", `/pets/${id}`);
  expect(json).toMatchObject({ name: "Rex", categoryId: -9_223_372_036_854_775_808n, status: "sold" });
  await page.getByText("pet.updated").waitFor();
});

test("white space around the category of a pet is no change, and an error about no field is shown as it is", async () => {
  const { page } = await open(`/pets/${await newPet("Spot")}`);
  await page.getByText("Clients can order it.").waitFor();
  const save = page.getByRole("button", { name: "Save changes" });
  const category = page.getByLabel("Category");
  await category.fill(" 9007199254740993 ");
  await save.click();
  await untilTrue(page, `document.querySelector("input.mono").value === "9007199254740993"`);
  const message = "At least one of name, categoryId, status is required.";
  await page.route("**/api/pets/*", (route) =>
    route.fulfill({ status: 400, json: { code: "invalid_body", message, status: 400 } }),
  );
  await category.fill("7");
  await save.click();
  await page.getByRole("region", { name: "Edit" }).getByText(message).waitFor();
});

test("a pet is deleted after its name was typed", async () => {
  const id = await newPet("Bello");
  const { page } = await open(`/pets/${id}`);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByLabel("Confirm").fill("Bello");
  await page.getByRole("button", { name: "Delete Bello" }).click();
  await untilAt(page, "/pets");
  expect((await server.client(secret, "GET", `/pets/${id}`)).status).toBe(404);
});

test("an order is completed: its pet is sold, and a pet with orders says why it cannot be deleted", async () => {
  const petId = await newPet("Luna");
  const { json } = await server.client(secret, "POST", "/store/orders", `{"petId":${petId}}`);
  const orderId = String(json["id"]);
  const { page } = await open(`/orders?keyId=${keyId}`);
  await page.getByRole("link", { name: orderId, exact: true }).first().click();
  await page.getByRole("button", { name: "Complete" }).click();
  await page.getByText("becomes sold").waitFor();
  await page.getByRole("button", { name: `Complete order ${orderId}` }).click();
  await page
    .locator(".badge", { hasText: /^✓\s*completed$/ })
    .first()
    .waitFor();
  const pet = await server.client(secret, "GET", `/pets/${petId}`);
  expect(pet.json).toMatchObject({ status: "sold" });

  await page.getByText(/^Completed .+: the pet became sold\.$/).waitFor();
  const facts = page.locator(".facts", { hasText: "Completed" });
  await facts.getByRole("link", { name: "Luna" }).waitFor();
  await page.goto(`${server.adminUrl}/orders?petId=${petId}`);
  await page.getByRole("row", { name: "Luna shop completed" }).waitFor();

  await page.goto(`${server.adminUrl}/pets/${petId}`);
  await page.getByText("it cannot be deleted").waitFor();
  await page.getByText("Clients cannot order it.").waitFor();
  expect(await page.getByRole("button", { name: "Delete" }).isDisabled()).toBe(true);
});

test("a pet is added in the console and found by a part of its name", async () => {
  const { page } = await open("/pets");
  await page.getByRole("link", { name: "Add pet" }).click();
  await page.keyboard.type("Greta the goose");
  await page.getByLabel("Category").fill("x");
  await page.getByRole("button", { name: "Add pet" }).click();
  await page.getByText("It must be an integer").waitFor();
  await page.getByLabel("Category").fill("9007199254740993");
  await page.getByRole("button", { name: "Add pet" }).click();
  await page.getByRole("heading", { name: "Greta the goose" }).waitFor();
  const id = page.url().split("/").at(-1);
  const { json } = await server.client(secret, "GET", `/pets/${id}`);
  expect(json).toMatchObject({ name: "Greta the goose", categoryId: 9_007_199_254_740_993n });
  await page.goto(`${server.adminUrl}/pets?search=GOOSE`);
  await page.getByRole("link", { name: "Greta the goose" }).waitFor();
  expect(await page.getByRole("row").count()).toBe(2);
  await page.goto(`${server.adminUrl}/pets/999999`);
  await page.getByRole("heading", { name: "There is no pet 999999" }).waitFor();
  await page.getByRole("link", { name: "See all pets" }).waitFor();
});

test("the form of a pet has an input for every field, by its kind, and takes the least values", async () => {
  const { page, look } = await open("/pets/new");
  const sample = objectWith(NewPet, "least");
  const fill = async (values: Readonly<Record<string, unknown>>) => {
    for (const [name, value] of Object.entries(values)) {
      const isChoice = GIVEN_PET_FIELDS[name as keyof NewPet].storedAs === "choice";
      if (isChoice) await page.getByRole("radio", { name: capitalized(String(value)), exact: true }).check();
      else await page.getByLabel(labelOf(name)).fill(String(value));
    }
  };
  await fill(sample);
  expect(await look("pet-form")).toEqual([]);
  await page.getByRole("button", { name: "Add pet" }).click();
  await page.getByRole("heading", { name: String(sample["name"]), exact: true }).waitFor();
  const id = page.url().split("/").at(-1);
  expect((await server.client(secret, "GET", `/pets/${id}`)).json).toMatchObject(sample);

  const change = objectWith(NewPet, "greatest");
  await fill({ ...change, name: "Rex" });
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { name: "Rex", exact: true }).waitFor();
  const changed = await server.client(secret, "GET", `/pets/${id}`);
  expect(changed.json).toEqual(withServiceValues({ ...change, name: "Rex" }, changed.json));
});

test("what is typed about a pet stays when somebody else changes it, and only that is saved", async () => {
  const id = await newPet("Typo");
  const { page } = await open(`/pets/${id}`);
  await page.getByLabel("Name").fill("Tycho");
  await server.admin("PATCH", `/pets/${id}`, { status: "sold" });
  await page.getByText("It was changed meanwhile.").waitFor();
  expect(await page.getByLabel("Name").inputValue()).toBe("Tycho");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { name: "Tycho" }).waitFor();
  const { json } = await server.client(secret, "GET", `/pets/${id}`);
  expect(json).toMatchObject({ name: "Tycho", status: "sold" });
  await page.getByText("It was changed meanwhile.").waitFor({ state: "detached" });
  await server.admin("PATCH", `/pets/${id}`, { name: "Untouched" });
  await untilTrue(page, "document.querySelector('textarea').value === 'Untouched'");
});

test("an error that may pass has a button that tries again", async () => {
  const { page } = await open("/settings");
  const body = { code: "internal_error", message: "It failed.", status: 500 };
  await page.route("**/api/plans", (route) => route.fulfill({ status: 500, json: body }));
  await page.getByRole("link", { name: "Plans", exact: true }).click();
  await page.getByText("The server failed, and has logged why.").waitFor();
  await page.getByRole("button", { name: "Try again" }).waitFor();
  await page.unroute("**/api/plans");
  // The button goes when the page has asked again by itself.
  await page.evaluate(`document.querySelector("[role=alert] button")?.click()`);
  await page.getByRole("button", { name: "Edit Free" }).waitFor();
});

test("what goes wrong is said in words for people", async () => {
  const { page } = await open("/settings");
  const error = (status: number, code: string) => ({ status, code, message: "As it is." });
  const failed = (why: string) => [".banner", `Not all of this page could be loaded: ${why}`] as const;
  for (const [status, json, [place, text]] of [
    [500, error(500, "internal_error"), failed("The server failed, and has logged why. Try again.")],
    [503, error(503, "unavailable"), failed("The database does not respond. Try again in a moment.")],
    [429, error(429, "other"), failed("As it is.")],
    [428, error(428, "other"), [".problem", "As it is."]],
    [501, "of a proxy", failed("The server responds 501.")],
    [502, "of a proxy", [".banner", "The server does not respond. You see the last data."]],
    [200, { items: 1 }, failed("The server sent something that this page does not know. Reload it.")],
  ] as const) {
    await page.route("**/api/plans", (route) => route.fulfill({ status, json }));
    await showPage(page, "/plans");
    const message = page.locator(place, { hasText: text });
    await message.waitFor();
    await page.unroute("**/api/plans");
    await showPage(page, "/settings");
    await message.waitFor({ state: "detached" });
  }
});

test("links within the console load nothing, and all others and clicks with a modifier are the browser's", async () => {
  const { page } = await open("/settings");
  const takenOver = await page.evaluate<string[]>(`(() => {
    const taken = [];
    const dispatch = (name, link, init) => {
      const child = link.appendChild(document.createElement("b"));
      document.body.append(link);
      // The console listens to the document.
      addEventListener("click", (event) => {
        if (event.defaultPrevented) taken.push(name);
        event.preventDefault();
      }, { once: true });
      child.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ...init }));
      link.remove();
    };
    const linkTo = (href, own) => Object.assign(document.createElement("a"), { href, ...own });
    dispatch("a link", linkTo("/settings"), {});
    dispatch("another origin", linkTo("http://127.0.0.1:1/settings"), {});
    dispatch("another tab", linkTo("/settings", { target: "_blank" }), {});
    dispatch("a place on the page", linkTo("#main"), {});
    dispatch("no link", document.createElement("p"), {});
    for (const key of ["metaKey", "ctrlKey", "shiftKey", "altKey"]) dispatch(key, linkTo("/settings"), { [key]: true });
    dispatch("another button", linkTo("/settings"), { button: 1 });
    return taken;
  })()`);
  expect(takenOver).toEqual(["a link"]);
});

test("/ leads to the search, unless somebody types or holds a modifier", async () => {
  const { page } = await open("/keys");
  await page.getByRole("searchbox").waitFor();
  const led = await page.evaluate<
    unknown[]
  >(`["body", "input", "select", "body ctrlKey", "body metaKey"].map((where) => {
    const [selector, modifier = "shiftKey"] = where.split(" ");
    document.activeElement.blur();
    const event = new KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true, [modifier]: true });
    document.querySelector(selector).dispatchEvent(event);
    return [event.defaultPrevented, document.activeElement.type === "search"];
  })`);
  expect(led.join()).toBe(`true,true${",false,false".repeat(4)}`);
});

test("the overview of an unknown range is that of a young server, and plots span the one that is chosen", async () => {
  const { page } = await open("/?range=toString");
  const chosen = page.getByRole("navigation", { name: "Time range" }).locator("[aria-current]");
  await chosen.getByText("15 min").waitFor();
  await page.getByText("p99 of 15 min").waitFor();
  await page.getByRole("link", { name: "1 h", exact: true }).click();
  await untilAt(page, "/?range=1h");
  await page.getByText("Latency as a table").click();
  const rows = page.getByRole("table", { name: "Latency" }).getByRole("row");
  await rows.nth(700).waitFor();
  // The table is as wide as its plot.
  const wide = "[...document.querySelectorAll('.plot')].some((plot) => plot.scrollWidth > plot.clientWidth)";
  expect(await page.evaluate(wide)).toBe(false);
});

test("the audit trail is filtered by action, actor and target, and links to what was changed", async () => {
  const { id } = await server.newKey({ name: "audited" });
  await server.admin("PATCH", `/keys/${id}`, { plan: "pro" });
  const { page } = await open("/audit");
  // A longer one would be an error.
  expect(await page.getByLabel("Who").getAttribute("maxlength")).toBe("64");
  await page.getByLabel("Action").selectOption("key.updated");
  await page.getByLabel("Where").selectOption("admin API");
  await page.getByLabel("Target").fill(`key:${id}`);
  await untilAt(page, `/audit?action=key.updated&actor=admin+API&target=key%3A${id}`);
  const table = page.getByRole("table", { name: "Audit" });
  await table.getByText("business").waitFor();
  expect(await table.getByRole("row").count()).toBe(2);
  await table.getByRole("link", { name: "audited" }).click();
  await page.getByRole("heading", { name: "audited" }).waitFor();
});

test("settings show the effective value and where it comes from, and a path without a page says so", async () => {
  const { page } = await open("/settings?search=admin-address");
  const row = page.getByRole("row").filter({ hasText: "--admin-address" });
  await row.getByText("Flag").waitFor();
  await row.getByText(new URL(server.adminUrl).host).waitFor();
  await page.getByRole("radio", { name: "Dark" }).check();
  expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
  await page.goto(`${server.adminUrl}/keys/x`);
  await page.getByRole("heading", { level: 1, name: "Not found" }).waitFor();
  await page.getByText("There is no such page").waitFor();
  await page.getByRole("link", { name: "Go to the overview" }).click();
  await untilAt(page, "/");
});

test("the overview names the database and the rate limiter and says which of them does not respond, and plots are tables too", async () => {
  const { page } = await open("/settings");
  let waitsForStandby = false;
  await page.route("**/api/server", async (route) => {
    const response = await route.fetch();
    const database = { kind: "PostgreSQL", state: "available", latencyMs: 1, waitsForStandby };
    const rateLimiter = { kind: "PostgreSQL", state: "unavailable", latencyMs: null };
    await route.fulfill({ response, json: { ...(await response.json()), database, rateLimiter } });
  });
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByText("PostgreSQL ok").waitFor();
  await page.getByText("limits unavailable").waitFor();
  // It serves: what is amber is the whole, and what is red are the limits.
  const health = page.locator(".health .badge").first();
  expect(await health.getAttribute("class")).toContain("tone-limited");
  waitsForStandby = true;
  await page.getByText("PostgreSQL waits for a standby, so writes get 503").waitFor();
  expect(await health.getAttribute("class")).toContain("tone-error");
  const namesIn = (title: string) => page.locator(".plot", { hasText: title }).locator(".series-name");
  await namesIn("Latency").nth(1).waitFor();
  expect((await namesIn("Latency").allTextContents()).toSorted()).toEqual(["p50", "p99"]);
  // A narrow plot has no room for long names.
  expect(await namesIn("Rejected per second").count()).toBe(0);
  await page.getByText("Requests per second as a table").click();
  await page.getByRole("table", { name: "Requests per second" }).waitFor();
});

test("the overview shows all servers together, and a row for each of them", async () => {
  const { page, look, takeProblems } = await open("/settings");
  await page.route("**/api/servers", async (route) => {
    const response = await route.fetch();
    const { items, total } = await response.json();
    const other = {
      ...items[0],
      id: "other",
      name: "web-2",
      adminUrl: "http://10.0.0.2:8090",
      requestsPerSecond: 40,
      requests: 9_000,
      rejections: 900,
      p50: 0.5,
      p99: 3,
      state: "unknown",
      seenAt: "2026-01-01T00:00:00Z",
    };
    const lost = { ...other, id: "lost", name: "web-3:8080", state: "lost" };
    const both = { ...total, requestsPerSecond: 40, requests: 10_000, rejections: 900, p50: 0.5, p99: 3 };
    await route.fulfill({ response, json: { items: [...items, other, lost], total: both } });
  });
  await page.getByRole("link", { name: "Overview" }).click();
  // Nobody knows whether a server that is not heard of serves.
  const health = page.locator(".health .badge").first();
  await health.getByText("1 server up, 1 not heard of, 1 lost").waitFor();
  expect(await health.getAttribute("class")).toContain("tone-limited");
  const servers = page.getByRole("table", { name: "Servers" });
  const row = servers.getByRole("row").filter({ hasText: "web-2" });
  await row.getByText("10.0.0.2:8090").waitFor();
  await row.getByText("not heard of").waitFor();
  const lostRow = servers.getByRole("row").filter({ hasText: "web-3:8080" });
  await lostRow.getByText("lost").waitFor();
  await page.getByText("Latency of the slowest server").first().waitFor();
  expect(await look("overview-of-two-servers")).toEqual([]);
  expect(takeProblems()).toEqual([]);
});

test("a parameter of the URL that the page does not know is no filter, and every page says who has signed in", async () => {
  const { page } = await open("/settings");
  await page.route("**/api/orders?*", (route) => route.fulfill({ json: { items: [], nextCursor: null } }));
  await showPage(page, "/orders?utm_source=mail");
  await page.getByText("There are no orders yet").waitFor();
  await showPage(page, "/keys?utm_source=mail");
  await page.getByRole("table", { name: "Keys" }).waitFor();
  expect(await page.getByText("Clear filters").count()).toBe(0);
  await showPage(page, "/keys?utm_source=mail&state=active");
  await page.getByText("Clear filters").waitFor();
  await page.getByRole("banner").getByRole("link", { name: "bootstrap" }).click();
  await page.getByText("This browser").waitFor();
});

test("on a phone a long name of an operator leaves the header its two lines, and plans have their names", async () => {
  const { page } = await open("/settings");
  const operator = { id: 1, name: "somebody.with.a.long.name@example.com", role: "admin" };
  await page.route("**/api/session", async (route) => {
    await route.fulfill({ json: { ...(await (await route.fetch()).json()), operator } });
  });
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 844 });
    await page.goto(`${server.adminUrl}/plans`);
    await page.getByText("Free", { exact: true }).first().waitFor();
    expect((await page.getByRole("banner").boundingBox())?.height).toBeLessThan(90);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("staging is told from production by the bar and the title, and a row has two lines on a phone", async () => {
  await server.newKey({ name: "narrow", owner: "somebody@example.com", labels: ["eu", "mobile"] });
  const { page } = await open("/keys");
  const bar = () => page.evaluate("getComputedStyle(document.querySelector('.header')).background");
  await untilTrue(page, "document.title === 'Keys · Petstore production'");
  const production = await bar();
  await page.route("**/keys", async (route) => {
    // A page that has not changed would have no body.
    const { "if-none-match": _, ...headers } = route.request().headers();
    const response = await route.fetch({ headers });
    const body = (await response.text()).replace('environment="production"', 'environment="staging"');
    await route.fulfill({ response, body });
  });
  await page.reload();
  await untilTrue(page, "document.title === 'STAGING: Keys · Petstore staging'");
  expect(await bar()).not.toBe(production);
  await page.setViewportSize({ width: 390, height: 844 });
  // The name of the page is beside the part of the navigation that fades.
  await untilTrue(
    page,
    "document.querySelector('.navigation [aria-current]').getBoundingClientRect().left > 32",
  );
  const row = page.getByRole("row").filter({ hasText: "narrow" });
  expect((await row.boundingBox())?.height).toBeLessThan(70);
  const endOf = async (text: string) => {
    const { x = 0, y = 0, width = 0 } = (await row.getByText(text).boundingBox()) ?? {};
    return { x: Math.round(x + width), y };
  };
  const [state, time] = [await endOf("active"), await endOf("never used")];
  expect(time.x).toBe(state.x);
  expect(time.y).toBeGreaterThan(state.y);
  expect(await row.getByText("read only").count()).toBe(0);
  await page.setViewportSize({ width: 1280, height: 800 });
});
