import { afterAll, afterEach, expect } from "bun:test";
import { startService } from "../service.ts";
import { startBrowser, test, untilTrue } from "./browser.ts";

const service = await startService({ otherEnvironmentUrl: "https://staging.example.com/v1" });
const browser = await startBrowser();
const urlOf = (path: string) => service.url.replace("/v1", path);
const { page, look, takeProblems } = await browser.open(urlOf("/docs"));
afterAll(() => service.stop());

const WITHOUT_SCRIPT = { javaScriptEnabled: false };
const PHONE = { viewport: { width: 390, height: 844 } };

/** The page is the same for all tests, but remembers nothing of the tests before. */
async function open(path: string): Promise<void> {
  await page.evaluate("localStorage.clear(); sessionStorage.clear()");
  await page.goto(urlOf(path));
}
afterEach(() => expect(takeProblems()).toEqual([]));

test.each(["/", "/docs/errors", "/docs/reference/getPet"])(
  "%s has no console errors, no requests elsewhere and no axe violations, and fits every screen",
  async (path) => {
    await open(path);
    expect(await page.title()).toContain("Petstore API");
    expect(await look(`docs${path.replaceAll("/", "-")}`)).toEqual([]);
  },
);

test("Ctrl+K and ⌘K open the search, also from a field; a corrected word is named", async () => {
  await open("/docs/reference/getPet");
  for (const shortcut of ["Control+k", "Meta+k"]) {
    await page.getByLabel("petId").focus();
    await page.keyboard.press(shortcut);
    await page.keyboard.type("pagintaion");
    await page.getByText("Showing results for “pagination”").waitFor();
  }
  await page.keyboard.press("Enter");
  await page.waitForURL("**/docs/pagination");
});

test("/ focuses the search, arrow keys choose a result, Enter opens it, Escape closes the list", async () => {
  await open("/docs/reference/getPet");
  await page.keyboard.press("/");
  const input = page.getByRole("combobox", { name: "Search the documentation" });
  await page.keyboard.type("retry-after");
  const results = page.getByRole("option");
  await results.first().waitFor();
  expect(await input.inputValue()).toBe("retry-after");
  expect(await results.first().getAttribute("aria-selected")).toBe("true");
  await page.keyboard.press("ArrowDown");
  expect(await results.nth(1).getAttribute("aria-selected")).toBe("true");
  expect(await input.getAttribute("aria-activedescendant")).toBe("search-results-1");
  await page.keyboard.type("/");
  expect(await input.inputValue()).toBe("retry-after/");
  await page.locator("#search-results-0[aria-selected=true]").waitFor();
  expect(await input.getAttribute("aria-expanded")).toBe("true");
  await page.keyboard.press("Escape");
  expect(await results.count()).toBe(0);
  const active = () => page.evaluate("document.activeElement.tagName");
  expect([await input.getAttribute("aria-expanded"), await active()]).toEqual(["false", "BODY"]);
  for (const shortcut of ["Alt+/", "k"]) await page.keyboard.press(shortcut);
  expect(await active()).toBe("BODY");

  await page.keyboard.press("/");
  await input.fill("getPet");
  await results.first().locator("mark").first().waitFor();
  expect(await results.first().locator(".method").textContent()).toBe("GET");
  expect(await results.first().locator("mark").first().textContent()).toBe("getPet");
  expect(await results.first().locator(".result-title").textContent()).toBe(
    "GET /pets/{petId} Fetch one pet",
  );
  expect(await results.first().locator(".result-text").textContent()).toStartWith("getPet · ");
  await page.locator(".search").click({ position: { x: 5, y: 5 } });
  expect(await results.count()).toBeGreaterThan(0);
  await page.locator("main").dispatchEvent("click");
  expect(await results.count()).toBe(0);
  await input.fill("key_banned");
  await page.getByRole("option", { name: "key_banned" }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/docs/reference/errors#key_banned");
  expect(await page.locator("#key_banned").isVisible()).toBe(true);
});

test("a search without a result says so, and hostile text stays text", async () => {
  await open("/docs");
  await page.keyboard.press("/");
  await page.keyboard.type("<img onload=xyzzy>");
  await page.getByText("Nothing found").waitFor();
  expect(await page.locator(".search img").count()).toBe(0);
});

test("a search whose index does not load says so, and tries again when it is asked to", async () => {
  await open("/docs");
  await page.route("**/search-*.json", (route) => route.fulfill({ status: 503, json: {} }));
  await page.keyboard.press("/");
  await page.keyboard.type("pagination");
  const problem = page.getByRole("alert").filter({ hasText: "The search could not be loaded." });
  await problem.waitFor();
  expect(await look("docs-search-failed")).toEqual([]);
  // The index of the second try must not load after all, because then there is nothing to try again.
  const failed = page.waitForResponse("**/search-*.json");
  await page.keyboard.press("Enter");
  await failed;
  await problem.waitFor();
  await page.unroute("**/search-*.json");
  await problem.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("option", { name: "Pagination" }).first().waitFor();
  expect(await problem.count()).toBe(0);
  expect(takeProblems().filter((each) => !each.includes("Failed to load resource"))).toEqual([]);
});

test("every control of a form that is not valid has a border in the colour of errors", async () => {
  await open("/docs/reference/listPets");
  await page.getByRole("button", { name: "Send request" }).waitFor();
  const borders = await page.evaluate<string[]>(`(() => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = "var(--error)";
    const controls = document.querySelectorAll("main :is(input:not([type=checkbox], [type=radio]), select)");
    return [...controls].map((control) => {
      control.style.transition = "none";
      control.setAttribute("aria-invalid", "true");
      return control.tagName + " " + (getComputedStyle(control).borderTopColor === getComputedStyle(probe).color);
    });
  })()`);
  expect([...new Set(borders)].toSorted()).toEqual(["INPUT true", "SELECT true"]);
});

test("a malformed fragment in the address is no error", async () => {
  await open("/docs/reference/getPet#%E0%A4%A<img>");
  await page.getByRole("button", { name: "Send request" }).waitFor();
});

test("the language that was chosen stays chosen, for all examples and on the next page", async () => {
  await open("/docs");
  await page.setViewportSize({ width: 1280, height: 800 });
  const languages = async () => {
    const blocks = page.locator(".example > .code:visible");
    return blocks.evaluateAll((each) => each.map((block) => block.getAttribute("data-language")));
  };
  expect(await languages()).toEqual(["curl", "curl"]);
  // The one that is clicked stays where it is.
  const python = page.getByRole("radio", { name: "Python" });
  await python.last().scrollIntoViewIfNeeded();
  const before = await python.last().boundingBox();
  await python.last().check();
  expect(await languages()).toEqual(["python", "python"]);
  expect(Math.abs(((await python.last().boundingBox())?.y ?? 0) - (before?.y ?? 0))).toBeLessThan(1);
  // Other inputs of the page are no languages.
  await page.getByLabel("status", { exact: true }).selectOption("sold");
  await page.getByLabel(/^Remember/).check();
  await page.getByRole("link", { name: "Idempotency", exact: true }).first().click();
  await page.waitForURL("**/docs/idempotency");
  expect(await page.getByRole("radio", { name: "Python" }).first().isChecked()).toBe(true);
});

test("a code block is copied as it is shown", async () => {
  await open("/docs/reference/listPets");
  // Pages of other tests in the same browser share its clipboard.
  await page.evaluate("navigator.clipboard.writeText = async (text) => void (window.copied = text)");
  const block = page.locator(".example > .code:visible");
  await block.getByRole("button", { name: "Copy" }).click();
  await untilTrue(page, "window.copied !== undefined");
  const copied = await page.evaluate("window.copied");
  expect(copied).toBe(await block.locator("pre").textContent());
  expect(copied).toContain(`${service.url}/pets`);
});

test("the theme that was chosen stays chosen and overrides the system", async () => {
  await open("/docs");
  const background = () => page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
  const light = await background();
  const button = page.getByRole("button", { name: /^Theme/ });
  await button.click();
  await button.click();
  expect(await button.textContent()).toBe("Dark");
  const dark = await background();
  expect(dark).not.toBe(light);
  await page.goto(urlOf("/docs/errors"));
  expect([await background(), await button.textContent()]).toEqual([dark, "Dark"]);
});

test("the sidebar keeps its position from page to page and shows the section that is read", async () => {
  await open("/docs/rate-limits");
  await page.setViewportSize({ width: 1280, height: 400 });
  const sidebar = page.locator("#navigation");
  await sidebar.evaluate((element) => element.scrollTo(0, 200));
  await page.getByRole("link", { name: "Errors", exact: true }).first().click();
  await page.waitForURL("**/docs/errors");
  expect(await sidebar.evaluate((element) => element.scrollTop)).toBe(200);

  await page.goto(urlOf("/docs/errors#retries"));
  const read = page.locator("#navigation .sections a[data-read]");
  await read.getByText("Retries").waitFor();
});

test("the sidebar shows its page, and marks the last section that begins above the middle of the screen", async () => {
  await open("/docs");
  await page.setViewportSize({ width: 1280, height: 400 });
  await page.goto(urlOf("/docs/reference/listPets"));
  // How far the middle of the link is from that of the sidebar, in heights of the link.
  const offset = `(() => {
    const middle = (element) => element.getBoundingClientRect().top + element.getBoundingClientRect().height / 2;
    const link = document.querySelector("#navigation [aria-current=page]");
    const sidebar = document.querySelector("#navigation");
    return Math.abs(middle(link) - middle(sidebar)) / link.getBoundingClientRect().height;
  })()`;
  expect(await page.evaluate<number>(offset)).toBeLessThan(1);
  expect(await page.evaluate("scrollY")).toBe(0);

  await page.setViewportSize({ width: 1280, height: 1_600 });
  await page.goto(urlOf("/docs/errors"));
  const isMarked = `(() => {
    const headings = [...document.querySelectorAll("main h2")];
    const last = headings.findLast((each) => each.getBoundingClientRect().top < innerHeight / 2);
    const marked = [...document.querySelectorAll("#navigation .sections [data-read]")];
    return marked.map(({ hash }) => hash.slice(1)).join() === last.id;
  })()`;
  await untilTrue(page, isMarked);
  await page.setViewportSize({ width: 1280, height: 800 });
  for (const share of [1, 0.5, 0.25]) {
    await page.evaluate(`scrollTo(0, document.body.scrollHeight * ${share})`);
    await untilTrue(page, isMarked);
  }
});

test("the first Tab leads to the content, and every parameter and error code can be linked to", async () => {
  await open("/docs/reference/createPet");
  await page.keyboard.press("Tab");
  expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content");
  await page.keyboard.press("Enter");
  expect(await page.evaluate("document.activeElement.id")).toBe("main");
  await page.goto(urlOf("/docs/reference/errors#rate_limited"));
  const top = await page.locator("#rate_limited").evaluate((element) => element.getBoundingClientRect().top);
  expect(top).toBeGreaterThan(56);
});

test("the environment menu has the address of this server and of the other environment", async () => {
  await open("/docs");
  const address = page.getByText("https://staging.example.com/v1");
  await page.getByRole("button", { name: "production" }).click();
  expect(await address.isVisible()).toBe(true);
  const link = page.getByRole("link", { name: "Documentation of staging" });
  expect(await link.getAttribute("href")).toBe("https://staging.example.com/docs");
  await page.keyboard.press("Escape");
  expect(await address.isVisible()).toBe(false);
});

test("72 columns of code fit at 1280 px, a wide table at 390 px, and the figure with readable text at both", async () => {
  await open("/docs/rate-limits");
  const shown = page.locator(".example > .code:visible pre").first();
  await shown.evaluate((element) => (element.textContent = "x".repeat(72)));
  expect(await shown.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
  const figure = page.locator("figure > svg");
  const widthOf = async (element: typeof figure) => (await element.boundingBox())?.width;
  expect(await widthOf(figure)).toBe(await widthOf(page.locator(".prose > p").first()));
  const textHeight = async () => (await figure.locator("text").last().boundingBox())?.height;
  const height = await textHeight();
  await page.setViewportSize(PHONE.viewport);
  expect(await widthOf(figure)).toBe(358);
  expect(height).toBeGreaterThanOrEqual(12);
  expect(await textHeight()).toBe(height);
  // A row of a wide table: its name on one line, what is said of it below.
  const [name, meaning] = await page.locator(".stacks tr:nth-child(2) td").all();
  const [first, second] = [await name?.boundingBox(), await meaning?.boundingBox()];
  expect([first?.x, second?.x]).toEqual([16, 16]);
  expect((second?.y ?? 0) - (first?.y ?? 0)).toBeLessThan(30);
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("names in links keep their underscores, and error codes have a column of their own", async () => {
  await open("/docs/reference/createPet");
  const offset = "getComputedStyle(document.querySelector('td a')).textUnderlineOffset";
  expect(await page.evaluate(offset)).toBe("5px");
  const texts = "[...document.querySelector('tr:has(a)').cells].map((cell) => cell.textContent)";
  expect(await page.evaluate(texts)).toEqual([
    "400",
    "invalid_json",
    "The request body is not JSON in UTF-8.",
  ]);
});

test("without JavaScript everything but search and try-it works, also on a phone", async () => {
  const wide = await browser.open(urlOf("/docs/reference/createPet"), WITHOUT_SCRIPT);
  await wide.page.getByRole("radio", { name: "TypeScript" }).check();
  const example = wide.page.locator(".example > .code:visible");
  expect(await example.getAttribute("data-language")).toBe("typescript");
  expect(await wide.page.locator("#createPet-name").isVisible()).toBe(true);
  expect(await wide.page.getByRole("combobox").count()).toBe(0);
  for (const path of ["/docs/reference/createPet", "/docs"]) {
    await wide.page.goto(urlOf(path));
    expect(await wide.page.getByText(/try it|your own key|send request/i).count()).toBe(0);
  }
  await wide.close();

  const phone = await browser.open(urlOf("/docs"), { ...WITHOUT_SCRIPT, ...PHONE });
  const sidebar = phone.page.locator("#navigation");
  const menu = phone.page.getByRole("button", { name: "Menu" });
  expect(await sidebar.isVisible()).toBe(false);
  await menu.click();
  await sidebar.waitFor({ state: "visible" });
  await phone.page.keyboard.press("Escape");
  await sidebar.waitFor({ state: "hidden" });
  await menu.click();
  await sidebar.getByRole("link", { name: "Integers" }).click();
  await phone.page.waitForURL("**/docs/integers");
  for (const opened of [wide, phone]) expect(opened.takeProblems()).toEqual([]);
  await phone.close();
});

test("on a phone, the search grows with the focus, and a link to a section of the page closes the menu", async () => {
  const phone = await browser.open(urlOf("/docs"), PHONE);
  const search = phone.page.getByLabel("Search the documentation");
  expect((await search.boundingBox())?.width).toBeGreaterThanOrEqual(232);
  await search.focus();
  expect((await search.boundingBox())?.width).toBe(358);
  await search.blur();
  const sidebar = phone.page.locator("#navigation");
  await phone.page.getByRole("button", { name: "Menu" }).click();
  await sidebar.getByRole("link", { name: "Order it" }).click();
  await sidebar.waitFor({ state: "hidden" });
  await phone.close();
});

test("on paper there is the content alone, in one column", async () => {
  await open("/docs/errors");
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  const colour = () => page.evaluate("getComputedStyle(document.documentElement).color");
  const light = await colour();
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await colour()).not.toBe(light);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await colour()).toBe(light);
  for (const selector of [".header", "#navigation", ".pager", ".copy"])
    expect(await page.locator(selector).first().isVisible()).toBe(false);
  expect(await page.locator("h1").isVisible()).toBe(true);
  expect(await page.evaluate("getComputedStyle(document.querySelector('.row')).display")).toBe("block");
});

test("with forced colors the sidebar shows which page it is, and the search which result", async () => {
  await open("/docs/errors");
  await page.emulateMedia({ media: "screen", forcedColors: "active" });
  const widthsOf = async (links: string) => {
    const widths: string[] = await page.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(links)})].map((each) => getComputedStyle(each).borderInlineStartWidth)`,
    );
    return new Set(widths);
  };
  expect(await widthsOf(".sidebar a[aria-current]")).toEqual(new Set(["2px"]));
  expect(await widthsOf(".sidebar a:not([aria-current])")).toEqual(new Set(["0px"]));
  await page.getByRole("combobox").fill("limit");
  await page.getByRole("option").nth(1).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.locator('.search li[aria-selected="true"]').waitFor();
  expect(await widthsOf('.search li[aria-selected="true"]')).toEqual(new Set(["2px"]));
  expect(await widthsOf('.search li[aria-selected="false"]')).toEqual(new Set(["0px"]));
  await page.emulateMedia({ forcedColors: "none" });
});
