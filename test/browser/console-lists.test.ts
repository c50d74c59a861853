import { expect } from "bun:test";
import { test, untilTrue } from "./browser.ts";
import { consoleFixture, showPage } from "./console-fixture.ts";

const { server, open, failOnProblems } = await consoleFixture();
failOnProblems();

/** What no line can break, and what a line can break. */
const UNBROKEN = "x".repeat(100);
const WORDS = "a name of many words ".repeat(4).trim();
const limits = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };
const labels = Array.from({ length: 7 }, (_, i) => `${i}${"label".repeat(5)}`);
const key = await server.newKey({
  name: UNBROKEN,
  owner: UNBROKEN,
  labels,
  notes: UNBROKEN,
  plan: "enterprise",
  limits,
});
await server.newKey({ name: WORDS, owner: WORDS, labels: ["one"], access: "read" });
const { json: pet } = await server.client(key.secret, "POST", "/pets", {
  name: UNBROKEN.repeat(10),
  categoryId: 7,
});
await server.client(key.secret, "POST", "/store/orders", `{"petId":${pet["id"]}}`);
await server.client(key.secret, "GET", `/${UNBROKEN}`);
await server.client(`${key.secret}x`, "GET", "/pets");
await server.newOperator(`${UNBROKEN.slice(50)}@example.com`, "support");

const PATHS = [
  "/keys",
  "/keys/new",
  "/keys/2",
  "/keys/2/edit",
  "/plans",
  "/pets",
  "/pets/1",
  "/orders",
  "/orders/1",
  "/requests",
  "/requests?open=none",
  "/audit",
  "/operators",
  "/settings",
  "/",
];
/**
 * Measures a copy of the page in a frame of each width, which takes no time for painting. Plots follow the width of the
 * page by a script, so the copy is without them.
 */
const MEASURE = `(async () => {
  const frame = document.createElement("iframe");
  frame.style.cssText = "position: fixed; border: 0; height: 400px; width: 100px";
  const copy = document.documentElement.cloneNode(true);
  for (const plot of copy.querySelectorAll(".plot-area")) plot.replaceChildren();
  document.body.append(frame);
  const { contentDocument } = frame;
  contentDocument.write("<!doctype html><html></html>");
  const styles = [...copy.querySelectorAll("link[rel=stylesheet]")];
  const loaded = styles.map((style) => new Promise((resolve) => style.addEventListener("load", resolve)));
  contentDocument.documentElement.replaceWith(contentDocument.adoptNode(copy));
  await Promise.all(loaded);
  const faults = [];
  for (let width = 320; width <= 2560; width += 40) {
    frame.style.width = width + "px";
    const { scrollWidth } = contentDocument.documentElement;
    if (scrollWidth > width) faults.push(scrollWidth + " px at " + width + " px");
    for (const sheet of contentDocument.querySelectorAll(".sheet"))
      if (sheet.scrollWidth > sheet.clientWidth) faults.push("a table leaves its sheet at " + width + " px");
    if (width > 1200) continue;
    for (const value of contentDocument.querySelectorAll("td :is(.number, code, time, .badge, .one-line)")) {
      const cell = value.closest("td").getBoundingClientRect();
      const { left, right } = value.getBoundingClientRect();
      if (left < right && (left < cell.left - 1 || right > cell.right + 1))
        faults.push(value.textContent + " leaves its cell at " + width + " px");
    }
  }
  frame.remove();
  return faults;
})()`;

/** The sizes of the texts that are not in the scale of the design. The signs of states are shapes. */
const SIZES = `[...document.querySelectorAll("body *")]
  .filter((each) => each.checkVisibility() && /\\S/.test([...each.childNodes].map((node) => node.data ?? "").join("")))
  .filter((each) => !each.matches(".symbol, .plot-area *"))
  .map((each) => getComputedStyle(each).fontSize)
  .filter((size, i, all) => ![12, 13, 14, 16, 20, 24].includes(parseFloat(size)) && all.indexOf(size) === i)`;

test("no page scrolls sideways, no value leaves its cell from 320 to 2,560 px, and texts have the sizes of the scale", async () => {
  const { page } = await open("/");
  const found: [path: string, faults: string[]][] = [];
  for (const path of PATHS) {
    await showPage(page, path);
    // The usage of a key is there a few seconds later.
    if (path === "/") await page.getByRole("row").filter({ hasText: UNBROKEN }).waitFor();
    const faults = [...(await page.evaluate<string[]>(SIZES)), ...(await page.evaluate<string[]>(MEASURE))];
    found.push([path, faults]);
  }
  expect(found).toEqual(PATHS.map((path) => [path, []]));
});

test("Back leads to the place in the list that one came from", async () => {
  await Promise.all(Array.from({ length: 48 }, (_, i) => server.newKey({ name: `client ${i}` })));
  const { page } = await open("/keys");
  await page.getByRole("row").nth(50).waitFor();
  const row = page.getByRole("row").nth(40).getByRole("link").first();
  await row.scrollIntoViewIfNeeded();
  const place = Number(await page.evaluate("scrollY"));
  expect(place).toBeGreaterThan(1_000);
  await row.click();
  await page.getByRole("heading", { name: "Secrets" }).waitFor();
  expect(await page.evaluate<number>("scrollY")).toBe(0);
  await page.goBack();
  await untilTrue(page, `scrollY === ${place}`);
});

test("on a phone all filters but the search are behind a button that counts them, and rows begin high", async () => {
  const { page } = await open("/keys?access=read&plan=business");
  await page.setViewportSize({ width: 390, height: 844 });
  const row = page.getByRole("row").filter({ hasText: WORDS });
  expect((await row.boundingBox())?.y).toBeLessThan(320);
  expect(await page.getByLabel("Plan").isVisible()).toBe(false);
  await page.getByRole("button", { name: "More filters 2" }).click();
  await page.getByLabel("Plan").selectOption("All");
  await page.getByLabel("Expire within").waitFor();
  await page.getByRole("button", { name: "More filters 1" }).click();
  await page.getByLabel("Expire within").waitFor({ state: "hidden" });
  await page.setViewportSize({ width: 1280, height: 800 });
  // On a wide screen a rare filter is there while it is given.
  await page.getByLabel("Access").selectOption("read only");
  expect(await page.getByLabel("Expire within").isVisible()).toBe(false);
});

test("an entry of the audit trail has one line at any width, with words for its fields, and shows all when it is opened", async () => {
  await server.admin("PATCH", "/plans", { plan: "free", perMinute: 59 });
  await server.admin("PATCH", "/ban-rules", { graceMs: 2_000 });
  const { page } = await open("/audit");
  const rows = page.getByRole("row");
  await rows.filter({ hasText: "Per minute 60 59" }).waitFor();
  await rows.filter({ hasText: "Grace 1 second 2 seconds" }).waitFor();
  const differ = `((heights) => Math.max(...heights) - Math.min(...heights))(
    [...document.querySelectorAll("tbody tr")].map((row) => row.offsetHeight))`;
  for (const width of [1280, 900, 768]) {
    await page.setViewportSize({ width, height: 800 });
    // The last row has no line below it.
    expect([width, await page.evaluate(differ)]).toEqual([width, 1]);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${server.adminUrl}/audit?target=key:${key.id}`);
  const created = rows.filter({ hasText: "key.created" });
  const before = (await created.boundingBox())?.height ?? 0;
  await created.locator("summary").click();
  expect((await created.boundingBox())?.height).toBeGreaterThan(5 * before);
});

test("on a phone a new secret is shown as a whole", async () => {
  const { page } = await open("/keys/2");
  await page.setViewportSize({ width: 320, height: 700 });
  await page.getByRole("button", { name: "Rotate secret" }).click();
  await page.getByRole("button", { name: "Rotate secret" }).last().click();
  const secret = page.getByLabel("Secret", { exact: true });
  await secret.waitFor();
  const hidden = `(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) =>
    [scrollWidth - clientWidth, scrollHeight - clientHeight])(document.querySelector("textarea"))`;
  expect(await page.evaluate<number[]>(hidden)).toEqual([0, 0]);
  await page.reload();
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("a key close to its limit is amber, labels are cut after three, hints are copied, and the sorted column is sorted", async () => {
  const limits = { perMinute: 10, perDay: 10 };
  const close = await server.newKey({
    name: "close",
    plan: "enterprise",
    limits,
    labels: ["a", "b", "c", "d", "e"],
  });
  for (let i = 0; i < 8; i++) await server.client(close.secret, "GET", "/pets");
  const { page } = await open("/keys?search=close");
  const row = page.getByRole("row").filter({ hasText: "close" });
  await row.locator(".quota-bar[data-close]", { hasText: "8 / 10 ▲" }).first().waitFor();
  await row
    .getByTitle(/^8 of 10\. Resets in \d/)
    .first()
    .waitFor();
  expect(await page.getByRole("columnheader", { name: "Owner" }).count()).toBe(0);
  // Where there is no room for the column of the day, the other one has what is close.
  const day = row.getByText("▲ 80 % of 24 h");
  await day.waitFor({ state: "hidden" });
  for (const width of [390, 768]) {
    await page.setViewportSize({ width, height: 800 });
    await day.waitFor();
    if (width === 390) expect((await row.innerText()).match(/▲/g)).toEqual(["▲"]);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  expect(await row.locator(".labels").innerText()).toMatch(/^a\s*b\s*c\s*\+2$/);
  await page.evaluate("navigator.clipboard.writeText = async (text) => void (window.copied = text)");
  await row.getByRole("button", { name: "Copy pet_live_" }).click();
  const hint = `${close.secret.slice(0, 13)}…${close.secret.slice(-4)}`;
  await page.getByText(`Copied ${hint}.`).waitFor();
  expect(await page.evaluate<string>("window.copied")).toBe(hint);

  // The server knows who uses how much a few seconds later.
  await page.goto(`${server.adminUrl}/`);
  await page.getByRole("link", { name: "close close to the limit" }).waitFor();
  // On a phone there is one line of pills, however many there are.
  await page.setViewportSize({ width: 390, height: 844 });
  // Plots follow the size of the screen a moment later.
  await untilTrue(page, "document.documentElement.scrollWidth === 390");
  const pills = `((row) => {
    for (let i = 0; i < 5; i++) row.append(row.lastElementChild.cloneNode(true));
    const { width } = document.querySelector(".attention .segments").getBoundingClientRect();
    return [row.offsetHeight < 50, row.scrollWidth > 390, width, document.documentElement.scrollWidth];
  })(document.querySelector(".pills"))`;
  expect(await page.evaluate<unknown[]>(pills)).toEqual([true, true, 358, 390]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${server.adminUrl}/keys`);
  await page.getByRole("link", { name: "24 hours" }).click();
  await page.locator("th[aria-sort=descending]", { hasText: "24 hours" }).waitFor();
  const used = `[...document.querySelectorAll("td.wide-only .quota-bar strong")].map((each) => Number(each.textContent))`;
  await untilTrue(page, `${used}[0] === 8 && ${used}.every((each, i, all) => i === 0 || each <= all[i - 1])`);
});

test("requests hold still while the pointer is on them, and one opens beside the list with all that is known of it", async () => {
  const { page } = await open("/requests");
  const rows = page.getByRole("row");
  const paths = () => rows.locator(".row-link").allInnerTexts();
  await rows.nth(1).waitFor();
  await rows.nth(3).hover();
  const before = await paths();
  for (let i = 0; i < 3; i++) await server.client(key.secret, "GET", `/arrived-${i}`);
  await page.getByRole("button", { name: "3 new requests" }).waitFor();
  expect(await paths()).toEqual(before);
  await page.getByRole("button", { name: "3 new requests" }).click();
  const arrived = page.getByRole("link", { name: "GET /v1/arrived-2" });
  await arrived.waitFor();
  // A response that went well has no sign, and a key is named.
  const first = rows.filter({ hasText: "GET /v1/pets" }).first();
  expect(await first.getByRole("cell").nth(2).innerText()).toBe("200");
  await first.getByRole("link", { name: "close" }).waitFor();

  await arrived.focus();
  await page.keyboard.press("Enter");
  const beside = page.getByRole("complementary");
  for (const text of ["No such path", "404", "not_found", "User agent", "Request id", UNBROKEN])
    await beside.getByText(text).first().waitFor();
  await arrived.waitFor();
  expect(new URL(page.url()).searchParams.has("open")).toBe(true);
  await page.locator("h2:focus", { hasText: "Request" }).waitFor();
  await page.keyboard.press("Escape");
  await beside.waitFor({ state: "detached" });
  await page.locator(".row-link:focus", { hasText: "arrived-2" }).waitFor();
});
