import { afterAll, afterEach, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { toJson } from "../../src/api/json.ts";
import type { BanRules } from "../../src/domain/ban-rules.ts";
import { matchPage } from "../../src/operator/console/pages.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { runPetstore, startPetstore } from "../../trials/harness/petstore.ts";
import { storePolicy } from "../../trials/harness/policy.ts";
import { freePorts } from "../../trials/harness/server.ts";
import { bearer } from "../bearer.ts";
import { parseJson } from "../exact-json.ts";
import { reportOnFailure, startBrowser, type TestPage, untilTrue } from "./browser.ts";

/** One server, one browser and one page for the tests of a file. */
export async function consoleFixture(ban: Partial<BanRules> = {}, flags: readonly string[] = []) {
  const browser = await startBrowser();
  const server = await startConsoleServer(ban, flags);
  afterAll(() => server.stop());
  let opened: TestPage | undefined;
  return {
    server,
    browser,
    /** Loads a page of the console, signed in. It is the same page for all tests of a file, and keeps its session. */
    async open(path = "/"): Promise<TestPage> {
      if (opened === undefined) {
        opened = await browser.open(await server.signInUrl(path));
      } else {
        await opened.page.unrouteAll({ behavior: "ignoreErrors" });
        await opened.page.goto(server.adminUrl + path);
      }
      await opened.page.getByRole("navigation", { name: "Main" }).waitFor();
      opened.takeProblems();
      return opened;
    },
    /** A test fails if something goes wrong on that page. */
    failOnProblems() {
      // A browser reports every response from 400 on.
      const isUnexpected = (problem: string) => !problem.includes("Failed to load resource");
      afterEach(() => expect(opened?.takeProblems().filter(isUnexpected) ?? []).toEqual([]));
    },
  };
}

/** Shows another page of the console as a link does: nothing is loaded but its data. */
export async function showPage(page: Page, path: string): Promise<void> {
  const url = JSON.stringify(path);
  await page.evaluate(`history.pushState(null, "", ${url}); dispatchEvent(new PopStateEvent("popstate"))`);
  const { name, id } = matchPage(path.replace(/\?.*/, "")) ?? { name: "Not found", id: "" };
  const title = JSON.stringify(`${name} ${id}`.trim());
  await untilTrue(page, `document.title.startsWith(${title} + " · ")`);
  await page.locator("h1").waitFor({ state: "attached" });
  await page.getByText("Loading …").first().waitFor({ state: "detached" });
}

export const TOKEN = "petadmin_0123456789abcdefghijklmnopqrstuvwxyz";

const LOG_LINES = 30;
const MAX_REQUESTS = 200;

/** A server with an admin listener, in a process of its own, so that it can be stopped and started again. */
async function startConsoleServer(ban: Partial<BanRules>, flags: readonly string[]) {
  const data = temporaryDirectory("data");
  const tokenFile = join(data, "token");
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  const [port, adminPort] = freePorts(2);
  const address = `127.0.0.1:${adminPort}`;
  const listeners = ["--port", `${port}`, "--admin-address", address, "--admin-token-file", tokenFile];
  const start = () => startPetstore([...listeners, "--data", data, ...flags]);
  await storePolicy(["--data", data], { ban });
  let running = await start();
  reportOnFailure(() => {
    const lines = running.log.slice(-LOG_LINES).map(({ text }) => text);
    return `The server logged:\n${lines.join("\n")}`;
  });
  const adminUrl = `http://${address}`;
  const apiUrl = running.url;

  /** The admin API, as a program calls it. */
  const admin = (method: string, path: string, body?: unknown) =>
    send(`${adminUrl}/api${path}`, { method, token: TOKEN, body });

  /** The API, as a client calls it. */
  const client = (secret: string, method: string, path: string, body?: unknown) =>
    send(apiUrl + path, { method, token: secret, body });

  return {
    adminUrl,
    apiUrl,
    admin,
    client,
    /**
     * Sends requests until one gets this code. Rejections in one millisecond are one strike at most, so how many it
     * takes to a ban depends on how fast they are.
     */
    async sendUntil(code: "rate_limited" | "key_banned", secret: string): Promise<void> {
      const got: unknown[] = [];
      while (got.length < MAX_REQUESTS) {
        const { status, json } = await client(secret, "GET", "/pets");
        if (json["code"] === code) return;
        got.push(json["code"] ?? status);
        await Bun.sleep(2);
      }
      throw new Error(`no request got ${code}: ${got.join(" ")}`);
    },
    async start() {
      running = await start();
    },
    stop: () => running.stop(),
    /** The URL of a page with a code, as `petstore admin-url` prints it. */
    async signInUrl(path = "/", operator = "bootstrap") {
      const { out, err } = await runPetstore("admin-url", "--data", data, "--operator", operator);
      const code = /code=\w+/.exec(out)?.[0];
      if (code === undefined) throw new Error(err);
      return `${adminUrl}${path}${path.includes("?") ? "&" : "?"}${code}`;
    },
    /** The token of a new operator. */
    async newOperator(name: string, role: string) {
      const { status, json } = await admin("POST", "/operators", { name, role });
      if (status !== 201) throw new Error(`createOperator: ${status} ${toJson(json)}`);
      return String(json["token"]);
    },
    /** A key of the given fields, with its secret. */
    async newKey(fields: Readonly<Record<string, unknown>>) {
      const { status, json } = await admin("POST", "/keys", { plan: "business", ...fields });
      if (status !== 201) throw new Error(`createKey: ${status} ${toJson(json)}`);
      return { id: Number(Object(json["key"]).id), secret: String(json["secret"]) };
    },
  };
}

interface SendOptions {
  readonly method: string;
  readonly token: string;
  readonly body: unknown;
}

/** What is no JSON object, such as an empty body, is an object without fields. */
async function send(url: string, { method, token, body }: SendOptions) {
  const headers = new Headers(bearer(token));
  if (body !== undefined) headers.set("Content-Type", "application/json");
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body: text }) });
  const received = await response.text();
  const json: Record<string, unknown> = Object(received === "" ? {} : parseJson(received));
  return { status: response.status, json };
}

/** Waits until the address bar has the path and query. */
export async function untilAt(page: Page, expected: string): Promise<void> {
  await page.waitForURL(({ pathname, search }) => pathname + search === expected);
}
