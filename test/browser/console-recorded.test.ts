import { expect } from "bun:test";
import { toJson } from "../../src/api/json.ts";
import { ADMIN_BASE_PATH, ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { test } from "./browser.ts";
import { consoleFixture } from "./console-fixture.ts";
import {
  ago,
  answerTo,
  KEY,
  NOW_MS,
  overviewOf,
  RESPONSES,
  type Responses,
  SERVERS,
  usageOf,
} from "./console-responses.ts";

/*
 * What pages show of responses that never change, and what they ask for: every text, class, link and state of an
 * element. After an intended change, record all again with
 * `npx bun scripts/test.ts test/browser/console-recorded.test.ts --update-snapshots`, and read the diff.
 */
const { server, browser } = await consoleFixture();
const { page } = await browser.open(await server.signInUrl(), { timezoneId: "Europe/Berlin" });
await page.getByRole("navigation", { name: "Main" }).waitFor();
await page.clock.setFixedTime(NOW_MS);

interface View {
  readonly path: string;
  /** What the server responds otherwise. */
  readonly given?: Partial<Responses>;
  /** The names of the buttons that are pressed, one after the other. */
  readonly press?: readonly string[];
  /** The keys that are pressed on the first plot. */
  readonly keys?: readonly string[];
  /** What is looked at; by default the page, or its dialog. */
  readonly of?: string;
}

const ZEROS = Array.from({ length: 12 }, () => 0);
const NOTHING = {
  requests: 0,
  success: 0,
  clientError: 0,
  limited: 0,
  banned: 0,
  serverError: 0,
  p50: null,
  p99: null,
};

const AS_VIEWER: View["given"] = {
  getSession: { signedIn: true, operator: { id: 3, name: "eve", role: "viewer" } },
};

const VIEWS: Readonly<Record<string, View>> = {
  overview: { path: "/?range=15m", press: ["Show 6"] },
  "the values of the last points but one": {
    path: "/?range=15m",
    keys: ["End", "ArrowLeft"],
    of: ".plot-area, .plot-values, .series-name, .legend",
  },
  "a third of the points": { path: "/", keys: ["PageUp", "PageUp", "PageDown", "+"], of: "h1" },
  "a part of the overview of several servers": {
    path: `/?range=${NOW_MS / 1_000 - 40}-${NOW_MS / 1_000 - 10}`,
    given: {
      listServers: SERVERS,
      getServer: {
        ...RESPONSES.getServer,
        database: { ...RESPONSES.getServer.database, waitsForStandby: true },
        rateLimiter: { kind: "PostgreSQL", state: "unavailable", latencyMs: null },
      },
      getOverview: {
        ...overviewOf(5),
        bannedKeys: null,
        closeKeys: { total: 3, first: { id: 8, name: "batch" } },
        deprecatedKeys: 2,
        missing: [{ name: "web-9", problem: "it does not respond" }],
        keyRequests: 0,
        topKeys: overviewOf(5).topKeys.slice(1, 2),
      },
    },
  },
  "overview without requests": {
    path: "/?range=24h",
    given: {
      listServers: { ...RESPONSES.listServers, items: SERVERS.items.slice(0, 2) },
      getServer: { ...RESPONSES.getServer, startedAt: ago(60) },
      getOverview: {
        ...overviewOf(60),
        requests: { success: ZEROS, clientError: ZEROS, limited: ZEROS, banned: ZEROS, serverError: ZEROS },
        p50: ZEROS.map(() => null),
        p99: ZEROS.map(() => null),
        totals: NOTHING,
        before: NOTHING,
        bannedKeys: 0,
        expiringKeys: 0,
        closeKeys: { total: 0, first: null },
        deprecatedKeys: 0,
        topKeys: [],
      },
    },
  },
  "overview of a service without a key": {
    path: "/",
    given: {
      listKeys: { items: [], total: 0, nextCursor: null },
      getServer: { ...RESPONSES.getServer, draining: true, startedAt: ago(60) },
      getOverview: { ...overviewOf(5), totals: { ...NOTHING, requests: 1 }, topKeys: [] },
    },
    of: ".sections",
  },
  "overview of a service without a key, for a viewer": {
    path: "/",
    given: {
      ...AS_VIEWER,
      listKeys: { items: [], total: 0, nextCursor: null },
      getOverview: { ...overviewOf(5), totals: NOTHING, topKeys: [] },
    },
    of: ".steps",
  },
  "a page that a viewer may not open": { path: "/keys/new", given: AS_VIEWER },
  "no keys, for a viewer": {
    path: "/keys?utm_source=mail",
    given: { ...AS_VIEWER, listKeys: { items: [], total: 0, nextCursor: null } },
  },
  "a pet, for a viewer": { path: "/pets/12", given: AS_VIEWER, of: ".sections, .with-aside, aside, .danger" },
  "operators, for one of them": { path: "/operators", given: AS_VIEWER, of: ".page-head, .menu-items" },
  "no page": { path: "/keys/x" },
  keys: { path: "/keys?label=eu" },
  "keys by name": {
    path: "/keys?sort=name&unused=7&deprecated=30&expires=90&state=expired&cursor=second",
    of: "header, main nav, thead, .rare",
  },
  "no banned key": {
    path: "/keys?state=banned",
    given: { listKeys: { items: [], total: 0, nextCursor: null } },
    of: ".segments, .empty",
  },
  "no key with the id of a request": {
    path: "/keys?search=0f8fad5b-d9cb-469f",
    given: { listKeys: { items: [], total: 0, nextCursor: null } },
    of: ".empty",
  },
  "a key": { path: "/keys/7" },
  "a key at its limit, by hour": {
    path: "/keys/7?usage=24h",
    given: {
      getKey: { ...KEY, usage: usageOf(79, 100) },
      getKeyUsage: { ...RESPONSES.getKeyUsage, by: "hour", since: ago(20 * 3_600) },
    },
    of: ".sentence, .quota, .plot",
  },
  "a key close to its limit, in 400 days": {
    path: "/keys/7?usage=400d",
    given: {
      getKey: { ...KEY, access: "write", owner: null, notes: null, labels: [], usage: usageOf(80, 0) },
      getKeyUsage: { ...RESPONSES.getKeyUsage, items: [] },
    },
    of: ".sentence, .quota, .empty, .facts",
  },
  "a banned key": {
    path: "/keys/7",
    given: { getKey: { ...KEY, state: "banned", bannedUntil: ago(-150), strikes: null, usage: null } },
    of: ".sentence, .quota, .actions",
  },
  "a banned key whose limit of the day is used up": {
    path: "/keys/7",
    given: { getKey: { ...KEY, state: "banned", bannedUntil: ago(-150), usage: usageOf(100, 100) } },
    of: ".sentence",
  },
  "a key whose limits of the minute and of the day are used up": {
    path: "/keys/7",
    given: { getKey: { ...KEY, usage: usageOf(100, 100) } },
    of: ".sentence",
  },
  "a disabled key that was never used": {
    path: "/keys/7",
    given: { getKey: { ...KEY, state: "disabled", lastUsedAt: null } },
    of: ".sentence, .empty, .actions",
  },
  "a new key": {
    path: "/keys/7",
    given: { getKey: { ...KEY, expiresAt: null, lastUsedAt: null } },
    of: ".sentence, .badge, .empty, .actions",
  },
  "an expired key": {
    path: "/keys/7",
    given: { getKey: { ...KEY, state: "expired", expiresAt: ago(86_400) } },
    of: ".sentence, .actions",
  },
  "a revoked key": {
    path: "/keys/7",
    given: { getKey: { ...KEY, state: "revoked", revokedAt: ago(3_600) } },
    of: ".sentence, .actions, .secrets, .facts, .card",
  },
  "the form of a new key": { path: "/keys/new" },
  "the form of a key": { path: "/keys/7/edit", of: "form, h1, aside" },
  "disable a key": { path: "/keys/7", press: ["Disable"] },
  "revoke a key": { path: "/keys/7", given: { getKey: { ...KEY, lastUsedAt: null } }, press: ["Revoke"] },
  "revoke a key whose name is hard to type": {
    path: "/keys/7",
    given: { getKey: { ...KEY, name: "x".repeat(41) } },
    press: ["Revoke"],
    of: "dialog",
  },
  "enable a key": {
    path: "/keys/7",
    given: { getKey: { ...KEY, name: "two  spaces", state: "disabled" } },
    press: ["Enable"],
  },
  "end a ban": {
    path: "/keys/7",
    given: { getKey: { ...KEY, state: "banned", bannedUntil: ago(-150) } },
    press: ["Unban"],
  },
  "rotate a secret": { path: "/keys/7", press: ["Rotate secret"] },
  "a new secret": { path: "/keys/7", press: ["Rotate secret", "Rotate secret", "Done"] },
  plans: { path: "/plans" },
  "the limits of a plan": { path: "/plans", press: ["Edit Free"] },
  "ban rules": {
    path: "/plans",
    given: {
      getBanRules: {
        ...RESPONSES.getBanRules,
        strikes: 1,
        graceMs: 0,
        maxLengthMs: 300_000,
      },
    },
    press: ["Edit ban rules"],
    of: "dialog, main > section:last-child",
  },
  pets: { path: "/pets?search=x&status=sold" },
  "a pet": { path: "/pets/12" },
  "a pet that can be ordered and deleted": {
    path: "/pets/13",
    given: {
      getPet: { id: 13n, name: "Luna", categoryId: 1n },
      listOrders: { items: [], nextCursor: null },
      listAudit: { items: [], nextCursor: null },
    },
    press: ["Delete"],
    of: "main, dialog",
  },
  "the form of a new pet": { path: "/pets/new" },
  orders: { path: "/orders" },
  "an order": { path: "/orders/3" },
  "an order of an earlier release": {
    path: "/orders/2",
    given: { getOrder: { ...RESPONSES.getOrder, status: "cancelled", keyId: null, petName: null } },
    of: ".sentence, .facts, .actions",
  },
  "cancel an order": { path: "/orders/3", press: ["Cancel order"] },
  "complete an order": { path: "/orders/3", press: ["Complete"] },
  requests: { path: "/requests?open=limited-1" },
  "a request without a key": {
    path: "/requests?until=2026-11-18T12:00:00Z&open=missing-1",
    of: "aside, .page-head",
  },
  "a request of a server that is gone": { path: "/requests?last=5&open=failed-11", of: "aside" },
  "a request that was searched for": {
    path: "/requests?requestId=banned-11",
    given: {
      listRequests: { ...RESPONSES.listRequests, items: RESPONSES.listRequests.items.slice(2, 3) },
    },
    of: "aside, .page-head",
  },
  "no request that matches": {
    path: "/requests?status=5xx&since=2026-11-18T11:00:00Z&last=60",
    given: { listRequests: { ...RESPONSES.listRequests, items: [] } },
  },
  "requests of servers that have none to show": {
    path: "/requests?status=5xx",
    given: {
      listRequests: {
        items: [],
        nextCursor: null,
        servers: RESPONSES.listRequests.servers.map((each) => ({
          ...each,
          problem: "its log is off",
          since: null,
        })),
      },
    },
    of: ".empty, .notice",
  },
  audit: { path: "/audit?since=2026-11-17&until=2026-11-18&operator=ann" },
  operators: { path: "/operators" },
  "rotate the own token": { path: "/operators", press: ["Actions for ann", "Rotate token"] },
  "revoke an operator": { path: "/operators", press: ["Actions for prometheus", "Revoke"] },
  "edit an operator": { path: "/operators", press: ["Actions for eve", "Edit"] },
  "create an operator": { path: "/operators", press: ["Create operator"] },
  settings: { path: "/settings?source=flag" },
  "settings that do not exist": { path: "/settings?search=none", of: ".filters, .empty" },
  "a test event": { path: "/settings", press: ["Send a test event"], of: ".form" },
  "settings with nothing to deliver": {
    path: "/settings?search=the",
    given: {
      getWebhook: { ...RESPONSES.getWebhook, oldestWaitingAt: null, deliveries: [] },
      getServer: { ...RESPONSES.getServer, draining: true },
    },
    of: ".facts, .data-table, table",
  },
  "the data of a plot": {
    path: "/",
    given: { listServers: SERVERS, getOverview: overviewOf(60) },
    press: ["Latency of the slowest server as a table", "Requests per second as a table"],
    of: ".plot:first-child, .plot:nth-child(2) th",
  },
  "places to go to": { path: "/settings", press: ["Go to … Ctrl K"] },
};

/** The operation of a request, as the console sends it. */
function operationOf(method: string, pathname: string): string | undefined {
  const isIt = (operation: AdminOperation) =>
    operation.method === method &&
    new RegExp(`^${ADMIN_BASE_PATH}${operation.path.replace(/\{\w+\}/, String.raw`\d+`)}$`).test(pathname);
  return Object.entries(ADMIN_OPERATIONS).find(([, operation]) => isIt(operation))?.[0];
}

/** Elements with their texts, classes, states and links, in lines that are as long as an element fits. */
const READ = String.raw`(selector) => {
  const width = 160;
  // What hides elements, or connects them by identifiers of their own, and what is in the text, too.
  const leftOut = /^(?:id|for|name|class|type|role|scope|style|dir|tabindex|spellcheck|autocomplete|data-label|datetime|popover.*|aria-(?:labelledby|describedby|controls|activedescendant|hidden))$/;
  const nameOf = (element) => {
    const { tagName, attributes, classList, value, checked, style } = element;
    const tag = /^(?:DIV|SPAN|BDI|P|STRONG|CODE|TIME|DD|LI)$/.test(tagName) ? "" : tagName.toLowerCase();
    const parts = [tag + [...classList].map((each) => "." + each).join("")];
    for (const { name, value } of attributes)
      if (!leftOut.test(name)) parts.push(value === "" ? name : name + "=" + JSON.stringify(value));
    if (element.matches("textarea, select, input:not([type=radio])")) parts.push("value=" + JSON.stringify(value));
    if (tag === "select")
      parts.push("of " + [...element.options].map(({ value, text }) => value === text ? text : value + "=" + text).join(", "));
    if (checked) parts.push("checked");
    if (style.width && !element.closest(".plot-area")) parts.push("width=" + style.width);
    if (style.minWidth) parts.push("min-width=" + style.minWidth);
    if (element === document.activeElement) parts.push("focused");
    return parts.filter(Boolean).join(" ");
  };
  const childrenOf = (element) => {
    const children = [];
    for (const node of element.childNodes) {
      const isText = node.nodeType === Node.TEXT_NODE;
      if (isText && typeof children.at(-1) === "string") children.push(children.pop() + node.data);
      else if (isText) children.push(node.data);
      else if (!node.matches("svg, canvas, .u-wrap, option")) children.push(node);
    }
    return children;
  };
  const read = (element, depth) => {
    const name = nameOf(element);
    const inner = name === "" ? depth : depth + 1;
    const lines = childrenOf(element)
      .flatMap((each) => typeof each === "string" ? each.replace(/\s+/g, " ").trim() : read(each, inner))
      .filter(Boolean);
    const line = lines.length === 0 ? name : name === "" ? lines.join(" ") : name + " { " + lines.join(" ") + " }";
    if (line.length + 2 * depth < width && !line.includes("\n")) return line;
    return [name, ...lines].filter(Boolean).join("\n" + "  ".repeat(inner));
  };
  return [...document.querySelectorAll(selector)].map((element) => read(element, 0)).join("\n");
}`;

let asked = new Set<string>();
let answers: Responses = RESPONSES;
let isWaiting = 0;
await page.route("**/api/**", async (route) => {
  isWaiting++;
  const { pathname, search, searchParams } = new URL(route.request().url());
  const operation = operationOf(route.request().method(), pathname);
  asked.add(`${pathname.slice(ADMIN_BASE_PATH.length)}${decodeURIComponent(search)}`);
  const json: unknown = Reflect.get(answerTo(searchParams, answers), operation ?? "");
  await route.fulfill({ contentType: "application/json", body: toJson(json) });
  isWaiting--;
});

/** Waits until nothing is asked for while everything is rendered. */
async function settle(): Promise<void> {
  for (let quiet = 0; quiet < 3; quiet++) {
    const before = asked.size;
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 50)))");
    if (isWaiting > 0 || asked.size > before) quiet = -1;
  }
}

test.each(Object.keys(VIEWS))("the console shows as recorded: %s", async (name) => {
  const { path = "/", given = {}, press = [], keys = [], of } = VIEWS[name] ?? {};
  // What the page before asks for is none of this one.
  await page.goto("about:blank");
  asked = new Set();
  answers = { ...RESPONSES, ...given };
  await page.goto(server.adminUrl + path);
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await settle();
  for (const button of press) {
    const summary = page.locator("summary", { hasText: button });
    const named = page.getByRole("button", { name: button, exact: true }).or(summary);
    await named.filter({ visible: true }).last().click();
    await settle();
  }
  if (keys.length > 0) await page.locator(".plot-area").first().focus();
  for (const key of keys) await page.keyboard.press(key);
  await settle();
  const isDialog = (await page.locator("dialog").count()) > 0;
  const shown = await page.evaluate<string>(
    `(${READ})(${JSON.stringify(of ?? (isDialog ? "dialog" : "main"))})`,
  );
  const url = page.url().slice(server.adminUrl.length);
  expect(`${url}\n${[...asked].toSorted().join("\n")}\n\n${shown}`).toMatchSnapshot();
});
