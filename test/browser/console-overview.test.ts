import { expect } from "bun:test";
import { test, untilTrue } from "./browser.ts";
import { consoleFixture, untilAt } from "./console-fixture.ts";

const { server, open, failOnProblems } = await consoleFixture();
failOnProblems();

test("a service that nobody has used shows three steps, and ticks each when it happened", async () => {
  const { page, screenshots } = await open("/");
  const steps = page.getByRole("region", { name: "First steps" });
  const doneOf = async () => {
    const items = await steps.getByRole("listitem").all();
    return Promise.all(items.map((item) => item.getByText("✓ done").count()));
  };
  // The first start of a server creates a key.
  await steps.getByText("The key first key exists.").waitFor();
  expect(await doneOf()).toEqual([1, 0, 0]);
  expect(await page.getByRole("navigation", { name: "Time range" }).count()).toBe(0);
  await screenshots("first-steps");
  await page.evaluate("navigator.clipboard.writeText = async (text) => void (window.copied = text)");
  await steps.getByRole("button", { name: "Copy curl command" }).click();
  await untilTrue(page, "document.querySelectorAll('.steps [data-done]').length === 2");
  expect(await page.evaluate<string>("copied")).toContain(
    `curl ${server.apiUrl}/pets \\\n  -H "Authorization: Bearer `,
  );
  const { secret } = await server.newKey({ name: "mobile app" });
  await server.client(secret, "GET", "/pets");
  await steps.getByRole("link", { name: "See your first request" }).waitFor();
  expect(await doneOf()).toEqual([1, 1, 1]);
  await page.getByRole("row", { name: "mobile app" }).getByText("100 %").waitFor();
  await steps.getByRole("link", { name: "See your first request" }).click();
  await untilAt(page, "/requests");
  await page.goBack();
  await page.getByRole("row", { name: "mobile app" }).waitFor();
  expect(await steps.count()).toBe(0);
});

test("a service that was used, but not today, shows its plots first", async () => {
  const { page } = await open("/settings");
  await page.route("**/api/overview?*", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), topKeys: [] } });
  });
  await page.getByRole("link", { name: "Overview" }).click();
  await page.locator(".empty", { hasText: "No key was used" }).waitFor();
  const top = (of: string) => `document.querySelector("${of}").getBoundingClientRect().top`;
  await untilTrue(page, `${top(".empty")} > ${top(".plots")}`);
});

test("a part of a plot is shown by dragging or by keys, the URL has it, and a mark has its words", async () => {
  const { page } = await open("/?range=15m");
  const plot = page.locator(".plot", { hasText: "Requests per second" });
  await plot.getByText("starts 1").waitFor();
  // It fills its card: the words around it have less than two thirds.
  const part =
    "document.querySelector('.u-over').offsetHeight / document.querySelector('.plot').offsetHeight";
  expect(await page.evaluate<number>(part)).toBeGreaterThan(0.4);
  const area = await plot.locator(".u-over").boundingBox();
  if (area === null) throw new Error("the plot is not visible");
  const { x, y, width } = area;
  await page.mouse.move(x + width * 0.5, y + 50);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.6, y + 50, { steps: 3 });
  const selected = `[...document.querySelectorAll(".u-select")].map(({ offsetWidth }) => offsetWidth > 0)`;
  expect(await page.evaluate<boolean[]>(selected)).toEqual([true, false, false]);
  await page.mouse.up();
  const range = /\?range=(\d+)-(\d+)$/;
  await page.waitForURL(range);
  const lengthOf = () => {
    const [, from = 0, until = 0] = (range.exec(page.url()) ?? []).map(Number);
    return until - from;
  };
  // A tenth of 15 minutes, to two steps.
  expect(Math.abs(lengthOf() - 90)).toBeLessThanOrEqual(10);
  const chosen = page.getByRole("navigation", { name: "Time range" }).locator("[aria-current]");
  expect(await chosen.innerText()).toMatch(/^\d\d:\d\d:\d\d – \d\d:\d\d:\d\d$/);
  await page.reload();
  const slider = page.getByRole("slider", { name: "Latency" });
  await slider.focus();
  await page.keyboard.press("Home");
  expect(await slider.getAttribute("aria-valuetext")).toContain(": p50 no data, p99 no data");
  // With a modifier a key is the browser's, or the system's.
  for (const modifier of ["Control", "Meta", "Alt"]) await page.keyboard.press(`${modifier}+End`);
  expect(await slider.getAttribute("aria-valuenow")).toBe("0");
  await page.keyboard.press("+");
  await page.waitForURL((url) => range.test(url.search) && lengthOf() < 60);
  await page.goBack();
  await page.goBack();
  await untilAt(page, "/?range=15m");
  await plot.getByText("Requests per second as a table").click();
  await plot.getByRole("cell", { name: "the server started" }).waitFor();
  await slider.focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/requests?since=*");
});

test("hovering moves nothing, also over a mark on a phone", async () => {
  const { secret } = await server.newKey({ name: "hovered" });
  await server.client(secret, "GET", "/pets");
  const { page } = await open("/settings");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.adminUrl}/?range=15m`);
  await page.locator(".plot").first().getByText("starts 1").waitFor();
  const area = await page.locator(".u-over").first().boundingBox();
  if (area === null) throw new Error("the plot is not visible");
  const places = `[...document.querySelector(".plot").querySelectorAll(".legend > :has(*), .u-over")].map((each) => {
    const { x, y } = each.getBoundingClientRect();
    return [Math.round(x), Math.round(y)];
  })`;
  const before = await page.evaluate(places);
  const { json } = await server.admin("GET", "/server");
  const age = (Date.now() - Date.parse(String(json["startedAt"]))) / (15 * 60_000);
  const texts: string[] = [];
  // While the pointer moves, a later response moves the plot by a step, which the pointer then misses.
  for (let sweep = 0; sweep < 3 && !texts.join().includes("the server started"); sweep++)
    for (let pixels = -12; pixels <= 12; pixels++) {
      await page.mouse.move(area.x + area.width * (1 - age) + pixels, area.y + 40);
      expect(await page.evaluate(places)).toEqual(before);
      texts.push(...(await page.locator(".plot-values").allInnerTexts()));
    }
  expect(texts.join()).toContain("the server started");
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("a burst of one minute in a day is drawn, in a plot of fewer pixels than minutes", async () => {
  const { page } = await open("/settings");
  await page.route("**/api/overview?*", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    const zeros = json.times.map(() => 0);
    const limited = zeros.with(700, 600);
    const requests = { ...json.requests, success: zeros, clientError: zeros, banned: zeros, limited };
    const totals = { ...json.totals, requests: 600, limited: 600 };
    await route.fulfill({ response, json: { ...json, requests, totals } });
  });
  await page.goto(`${server.adminUrl}/?range=24h`);
  const plot = page.locator(".plot", { hasText: "Rejected per second" });
  await plot.getByText("Rejected per second as a table").click();
  await plot.getByRole("cell", { name: "10", exact: true }).waitFor();
  // The colour of what is limited has twice as much red as blue, which grey has not.
  const isSeen = `(() => {
    const canvas = [...document.querySelectorAll(".plot")].at(-1).querySelector("canvas");
    const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const [rows, columns] = [new Set(), new Set()];
    for (let i = 0; i < data.length; i += 4)
      if (data[i + 3] > 100 && data[i] > 2 * data[i + 2]) {
        rows.add(Math.floor(i / 4 / width));
        columns.add((i / 4) % width);
      }
    return columns.size >= 3 && rows.size > document.querySelector(".u-over").offsetHeight / 2;
  })()`;
  await untilTrue(page, isSeen);
});

/** The overview with other values of each step: how many succeeded, or null if that is unknown. */
async function openWith(range: string, valueOf: (index: number, length: number) => number | null) {
  const { page } = await open("/settings");
  await page.route("**/api/overview?*", async (route) => {
    const json = await (await route.fetch()).json();
    const values: (number | null)[] = json.times.map((_: number, i: number) => valueOf(i, json.times.length));
    const zeros = values.map((value) => value && 0);
    const requests = {
      success: values,
      clientError: zeros,
      limited: zeros,
      banned: zeros,
      serverError: zeros,
    };
    const totals = { ...json.totals, requests: 1_000 };
    await route.fulfill({ json: { ...json, requests, totals } });
  });
  await page.goto(`${server.adminUrl}/?range=${range}`);
  await page.locator(".plot", { hasText: "Requests per second" }).locator(".u-over").waitFor();
  return page;
}

/** A row of pixels of the first plot, at a part of its height from the top: one letter for each hundredth. */
const pixelsAt = (part: number) => `(() => {
  const [canvas, over] = ["canvas", ".u-over"].map((each) => document.querySelector(".plot " + each));
  const [left, top] = [over.offsetLeft, over.offsetTop + over.offsetHeight * ${part}];
  const scale = canvas.width / canvas.offsetWidth;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(left * scale, top * scale, over.offsetWidth * scale, 1);
  return Array.from({ length: 100 }, (_, i) => {
    const at = 4 * Math.floor(((i + 0.5) / 100) * (data.length / 4));
    // Nothing, a shade, or the colour of the series.
    return data[at + 3] === 0 ? "." : Math.abs(data[at] - data[at + 2]) < 20 ? "/" : "#";
  }).join("");
})()`;

test("missing steps are shaded, which zeros are not, and the values are beside the pointer", async () => {
  const page = await openWith("15m", (i, n) => (i > n * 0.4 && i < n * 0.6 ? null : i < n * 0.2 ? 0 : 500));
  // Near the lower edge: zeros are empty, data are filled, and missing steps are shaded.
  await untilTrue(page, `/^\\.{15,25}#{15,25}[/]{15,25}#{30,45}$/.test(${pixelsAt(0.93)})`);
  const area = await page.locator(".u-over").first().boundingBox();
  if (area === null) throw new Error("the plot is not visible");
  const values = page.locator(".plot-values");
  const hover = (part: number) => page.mouse.move(area.x + area.width * part, area.y + 40);
  await hover(0.3);
  await values.getByText("success").waitFor();
  expect(await values.innerText()).toContain("100");
  // Other plots have the cursor, but not the pointer.
  expect(await values.count()).toBe(1);
  const box = await values.boundingBox();
  expect((box?.x ?? 0) - (area.x + area.width * 0.3)).toBeWithin(0, 30);
  await hover(0.1);
  await values.getByText("none").waitFor();
  await hover(0.5);
  await values.getByText("no data").waitFor();
  await page.mouse.move(0, 0);
  await values.waitFor({ state: "detached" });
  const slider = page.getByRole("slider", { name: "Requests per second" });
  await slider.focus();
  await page.keyboard.press("End");
  await values.getByText("success").waitFor();
  await page.keyboard.press("Tab");
  await values.waitFor({ state: "detached" });
});

test("a burst of seconds leaves the scale of a quarter of an hour to the rest, and its height is named", async () => {
  const page = await openWith("15m", (i, n) => (i === Math.floor(n / 2) ? 20_000 : 500));
  // The usual 100/s fill more than the lower half, and the burst goes to the top.
  await untilTrue(page, `/^#+$/.test(${pixelsAt(0.6)}) && /^[^#]+#{1,3}[^#]+$/.test(${pixelsAt(0.05)})`);
  await page.getByText("Requests per second as a table").click();
  await page.getByRole("cell", { name: "4,000", exact: true }).waitFor();
});

test("of servers that started later or are lost, the overview says what is missing in the plots", async () => {
  const page = await openWith("15m", () => 500);
  await page.route("**/api/servers", async (route) => {
    const { items, total } = await (await route.fetch()).json();
    const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
    const [own] = items;
    const all = [
      { ...own, startedAt: minutesAgo(60) },
      { ...own, id: "later", name: "web-2", startedAt: minutesAgo(8) },
      { ...own, id: "lost", name: "web-3", startedAt: minutesAgo(60), state: "lost", seenAt: minutesAgo(10) },
      { ...own, id: "early", name: "web-4", startedAt: minutesAgo(60) },
    ];
    await route.fulfill({ json: { items: all, total } });
  });
  await page
    .getByText(
      /^Not in the plots: requests of web-2 before its start at [\d:]+; requests of web-3, which is lost\./,
    )
    .waitFor();
  // The shade is behind the data, up to the latest of both.
  await untilTrue(
    page,
    `/^[/.]{40,55}[.]{30,60}$/.test(${pixelsAt(0.02)}) && ${pixelsAt(0.02)}.includes("/")`,
  );
  expect(await page.locator("main").innerText()).not.toContain("web-4 before");
});

test("Ctrl+K leads to a page, a key and a request, and creates a key, with the keyboard alone", async () => {
  const { page } = await open("/settings");
  const field = page.getByRole("combobox", { name: "A page, a key or a request" });
  const go = async (text: string, option: string) => {
    await page.keyboard.press("Control+k");
    await field.fill(text);
    await page.getByRole("option", { name: option, selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await field.waitFor({ state: "detached" });
  };
  await page.keyboard.press("Control+k");
  const chosen = async () => {
    const options = await page.locator("dialog [aria-selected=true]").allTextContents();
    const id = await field.getAttribute("aria-activedescendant");
    return [...options, await page.locator(`[id="${id}"]`).textContent()];
  };
  for (const [key, place] of [
    ["ArrowUp", "Settings Page"],
    ["ArrowDown", "Overview Page"],
    ["ArrowDown", "Keys Page"],
  ] as const) {
    await page.keyboard.press(key);
    expect(await chosen()).toEqual([place, place]);
  }
  await page.getByRole("option", { name: "Create a key" }).dispatchEvent("pointermove");
  expect(await chosen()).toEqual(["Create a key Page", "Create a key Page"]);
  await field.fill("nothing has this name");
  await page.getByText("Nothing has that name.").waitFor();
  for (const key of ["ArrowDown", "Enter"]) await page.keyboard.press(key);
  expect(await field.getAttribute("aria-activedescendant")).toBeNull();
  await field.fill("o");
  expect(await chosen()).toEqual(["Overview Page", "Overview Page"]);
  await page.keyboard.press("Escape");
  await go("mobile", "mobile app Key");
  await page.getByRole("heading", { name: "mobile app" }).waitFor();
  await go("0f8fad5b-d9cb-469f", "0f8fad5b-d9cb-469f Request");
  await untilAt(page, "/requests?requestId=0f8fad5b-d9cb-469f");
  await go("audi", "Audit Page");
  await untilAt(page, "/audit");
  await go("create", "Create a key Page");
  await page.getByLabel("Name").waitFor();
  // A secret gets into no URL.
  const urls: string[] = [];
  page.on("request", (request) => urls.push(request.url()));
  await page.keyboard.press("Control+k");
  const dialog = page.getByRole("dialog");
  const before = await dialog.boundingBox();
  await field.fill("pet_live_abcdefgh");
  await page.getByText("That is a secret.").waitFor();
  // The dialog stays where it is, though it has found nothing.
  expect(await dialog.boundingBox()).toEqual(before);
  await page.keyboard.press("Escape");
  await field.waitFor({ state: "detached" });
  expect(urls.filter((url) => url.includes("pet_live"))).toEqual([]);
});
