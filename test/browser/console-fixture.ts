import { afterAll, beforeAll } from "bun:test";
import { TestBrowser, type TestPage } from "./browser.ts";
import { ConsoleServer, TOKEN } from "./console-server.ts";

/** Installing the browser, when it is missing, takes most of it. */
export const START_TIMEOUT_MS = 300_000;
export const TEST_TIMEOUT_MS = 90_000;

export interface ConsoleFixture {
  readonly server: ConsoleServer;
  readonly browser: TestBrowser;
  /** Opens a page of the console, signed in. */
  open(path?: string): Promise<TestPage>;
}

/** One server and one browser for the tests of a file. */
export function consoleFixture(flags: readonly string[] = []): ConsoleFixture {
  let server: ConsoleServer | undefined;
  let browser: TestBrowser | undefined;
  beforeAll(async () => {
    server = await ConsoleServer.start(flags);
    browser = await TestBrowser.start();
  }, START_TIMEOUT_MS);
  afterAll(async () => {
    await browser?.stop();
    await server?.stop();
  });
  return {
    get server() {
      if (server === undefined) throw new Error("The server has not started");
      return server;
    },
    get browser() {
      if (browser === undefined) throw new Error("The browser has not started");
      return browser;
    },
    async open(path = "/") {
      const separator = path.includes("?") ? "&" : "?";
      const opened = await this.browser.open(`${this.server.adminUrl}${path}${separator}token=${TOKEN}`);
      await opened.page.getByRole("navigation", { name: "Main" }).waitFor();
      return opened;
    },
  };
}
