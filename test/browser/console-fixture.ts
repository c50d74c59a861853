import { afterAll, afterEach, expect } from "bun:test";
import { matchPage } from "../../src/operator/console/pages.ts";
import { TestBrowser, type TestPage, untilTrue } from "./browser.ts";
import { type ConsoleServer, startConsoleServer } from "./console-server.ts";

export interface ConsoleFixture {
  readonly server: ConsoleServer;
  readonly browser: TestBrowser;
  /** Loads a page of the console, signed in. It is the same page for all tests of a file, and keeps its session. */
  open(path?: string): Promise<TestPage>;
  /** A test fails if something goes wrong on that page. */
  failOnProblems(): void;
}

/** One server, one browser and one page for the tests of a file. */
export async function consoleFixture(flags: readonly string[] = []): Promise<ConsoleFixture> {
  const [server, browser] = await Promise.all([startConsoleServer(flags), TestBrowser.start()]);
  afterAll(async () => {
    await browser.stop();
    await server.stop();
  });
  let opened: TestPage | undefined;
  return {
    server,
    browser,
    async open(path = "/") {
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
    failOnProblems() {
      // A browser reports every response from 400 on.
      const isUnexpected = (problem: string) => !problem.includes("Failed to load resource");
      afterEach(() => expect(opened?.takeProblems().filter(isUnexpected) ?? []).toEqual([]));
    },
  };
}

/** Shows another page of the console as a link does: nothing is loaded but its data. */
export async function showPage({ page }: TestPage, path: string): Promise<void> {
  const url = JSON.stringify(path);
  await page.evaluate(`history.pushState(null, "", ${url}); dispatchEvent(new PopStateEvent("popstate"))`);
  const { name, id } = matchPage(path) ?? { name: "Not found", id: "" };
  const title = JSON.stringify(`${name} ${id}`.trim());
  await untilTrue(page, `document.title.startsWith(${title} + " · ")`);
  await page.locator("h1").waitFor({ state: "attached" });
  await page.getByText("Loading …").first().waitFor({ state: "detached" });
}
