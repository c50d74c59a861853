import { afterAll, setDefaultTimeout, test as testOnce } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { connectToChromium } from "../../trials/harness/chromium.ts";

/** Where screenshots are written; without it there are none. */
const DIRECTORY = process.env.PETSTORE_TEST_SCREENSHOTS;

const APPEARANCES = [
  { theme: "light", width: 1280, height: 800 },
  { theme: "dark", width: 1280, height: 800 },
  { theme: "light", width: 390, height: 844 },
  { theme: "dark", width: 390, height: 844 },
] as const;
type Appearance = (typeof APPEARANCES)[number];

/**
 * axe takes much of the time of these tests: it sees each theme and each screen once, by turns in both pairs. Dialogs
 * are alike: it sees each of them in one appearance, by turns.
 */
const PAIRS = [
  [APPEARANCES[0], APPEARANCES[3]],
  [APPEARANCES[1], APPEARANCES[2]],
] as const;

const AXE = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

/**
 * How long an action waits for its element, and a navigation for its page. The overview reuses for up to 30 seconds
 * what took long to load, as everything does on a busy machine.
 */
const TIMEOUT_MS = 45_000;

const SHOWN_LENGTH = 3_000;
const reports = new Set<() => string | Promise<string>>();

/** Adds what a function returns to the error of each test of the file that fails. */
export function reportOnFailure(report: () => string | Promise<string>): void {
  reports.add(report);
  afterAll(() => void reports.delete(report));
}

function explained<Row extends unknown[]>(body: (...row: Row) => unknown) {
  return async (...row: Row): Promise<void> => {
    try {
      await body(...row);
    } catch (error) {
      const texts = await Promise.all([...reports].map((report) => report()));
      if (error instanceof Error) error.message = [error.message, ...texts].join("\n\n");
      throw error;
    }
  };
}

/** Registers a test as `test` of bun:test does. One that fails says what the pages show and what the server logged. */
export function test(name: string, body: () => unknown): void {
  testOnce(name, explained(body));
}

test.each = <Row>(rows: readonly Row[]) => {
  const testRow = testOnce.each([...rows]);
  return (name: string, body: (row: Row) => unknown) => testRow(name, explained(body));
};

/** Opens pages in a real browser, each with cookies and storage of its own, until the tests of the file have ended. */
export async function startBrowser() {
  setDefaultTimeout(120_000);
  const browser = await connectToChromium();
  const allPages = () => browser.contexts().flatMap((context) => context.pages());
  reportOnFailure(async () => (await Promise.all(allPages().map(textOf))).join("\n\n"));
  afterAll(async () => {
    const pages = allPages();
    // A response that a test changes may be on its way.
    await Promise.all(pages.map((page) => page.unrouteAll({ behavior: "ignoreErrors" })));
    await browser.close();
  });
  return {
    async open(url: string, options: BrowserContextOptions = {}): Promise<TestPage> {
      const context = await browser.newContext({ reducedMotion: "reduce", ...options });
      context.setDefaultTimeout(TIMEOUT_MS);
      const opened = testPage(await context.newPage(), context, new URL(url).origin);
      await opened.page.goto(url);
      return opened;
    },
  };
}

async function textOf(page: Page): Promise<string> {
  const shown = page.evaluate("document.body.innerText").catch(String);
  const text = await Promise.race([shown, Bun.sleep(2_000).then(() => "The page does not respond.")]);
  return `${page.url()} shows:\n${String(text)
    .replaceAll(/\s*\n\s*/g, "\n")
    .slice(0, SHOWN_LENGTH)}`;
}

export type TestPage = ReturnType<typeof testPage>;

/** A page, and what went wrong on it. */
function testPage(page: Page, context: BrowserContext, origin: string) {
  let problems: string[] = [];
  let looks = -1;
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`exception: ${error.message}`));
  context.on("request", (request) => {
    if (isElsewhere(request.url(), origin)) problems.push(`request to another origin: ${request.url()}`);
  });

  /** Writes NAME-THEME-WIDTH.png for each appearance, if a directory for them is given. */
  async function screenshots(name: string): Promise<void> {
    if (DIRECTORY === undefined) return;
    for (const appearance of APPEARANCES) {
      await show(page, appearance);
      await overflowOf(page);
      const path = join(DIRECTORY, `${name}-${appearance.theme}-${appearance.width}.png`);
      await page.screenshot({ path, fullPage: true });
    }
    await show(page, APPEARANCES[0]);
  }

  return {
    page,
    screenshots,
    /** Errors and warnings in the console, exceptions, and requests to other origins, since the last call. */
    takeProblems(): string[] {
      const taken = problems;
      problems = [];
      return taken;
    },
    /** What is wrong with the page: violations that axe finds, and content that is wider than the screen. */
    async look(name: string): Promise<string[]> {
      await screenshots(name);
      const faults: string[] = [];
      looks++;
      const pair = PAIRS[looks % 2 === 0 ? 0 : 1];
      const isDialog = (await page.evaluate(`${SHOWN} !== document`)) === true;
      for (const appearance of isDialog ? [pair[looks % 4 < 2 ? 0 : 1]] : pair) {
        await show(page, appearance);
        const { theme, width } = appearance;
        const found = [...(await overflowOf(page)), ...(await violationsOf(page))];
        faults.push(...found.map((fault) => `${theme}, ${width} px: ${fault}`));
      }
      await show(page, APPEARANCES[0]);
      return faults;
    },
    close: () => context.close(),
  };
}

async function show(page: Page, { theme, width, height }: Appearance): Promise<void> {
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: theme });
}

/** Plots follow the size of the screen a moment later. */
async function overflowOf(page: Page): Promise<string[]> {
  const fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
  return untilTrue(page, fits).then(
    () => [],
    () => ["the content is wider than the screen"],
  );
}

/** What axe looks at. The page behind a dialog was looked at without it. */
const SHOWN = `(document.querySelector("dialog[open]") ?? document)`;

/** One line for each element that breaks a rule of WCAG 2.2 AA or a best practice. */
async function violationsOf(page: Page): Promise<string[]> {
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(AXE);
  const options = JSON.stringify({ resultTypes: ["violations"], preload: false });
  const lines: unknown = await page.evaluate(`axe.run(${SHOWN}, ${options}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
      id + " at " + target.join(" ") + ": " + failureSummary.replace(/\\s+/g, " "))))`);
  return Array.isArray(lines) ? lines.map(String) : [`axe returned ${String(lines)}`];
}

/** data: and blob: URLs have no server. */
function isElsewhere(url: string, origin: string): boolean {
  const { protocol, origin: requested } = new URL(url);
  return /^(?:https?|wss?):$/.test(protocol) && requested.replace(/^ws/, "http") !== origin;
}

const RETRY_MS = 20;

/** Waits for an expression. The pages allow no eval, without which Playwright's waitForFunction asks only once. */
export async function untilTrue(page: Page, expression: string): Promise<void> {
  const end = performance.now() + TIMEOUT_MS;
  while ((await page.evaluate(expression)) !== true) {
    if (performance.now() > end) throw new Error(`never true: ${expression}`);
    await Bun.sleep(RETRY_MS);
  }
}
