import { afterAll, afterEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { matchPage } from "../../src/operator/console/pages.ts";
import { startBrowser, type TestPage, untilTrue } from "./browser.ts";
import { startConsoleServer } from "./console-server.ts";

/** One server, one browser and one page for the tests of a file. */
export async function consoleFixture(flags: readonly string[] = []) {
  const browser = await startBrowser();
  const server = await startConsoleServer(flags);
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
  const { name, id } = matchPage(path) ?? { name: "Not found", id: "" };
  const title = JSON.stringify(`${name} ${id}`.trim());
  await untilTrue(page, `document.title.startsWith(${title} + " · ")`);
  await page.locator("h1").waitFor({ state: "attached" });
  await page.getByText("Loading …").first().waitFor({ state: "detached" });
}
