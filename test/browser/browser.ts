import { setDefaultTimeout } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { connectToChromium } from "../../trials/harness/chromium.ts";

/** Where screenshots are written; without it there are none. */
const FOLDER = process.env.PETSTORE_TEST_SCREENSHOTS;

const APPEARANCES = [
  { theme: "light", width: 1280, height: 800 },
  { theme: "dark", width: 1280, height: 800 },
  { theme: "light", width: 390, height: 844 },
  { theme: "dark", width: 390, height: 844 },
] as const;
type Appearance = (typeof APPEARANCES)[number];

/** axe takes most of the time of these tests: it sees each theme and each screen once, by turns in both pairs. */
const PAIRS = [
  [APPEARANCES[0], APPEARANCES[3]],
  [APPEARANCES[1], APPEARANCES[2]],
] as const;

const AXE = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

/** How long an action waits for its element, and a navigation for its page. */
const TIMEOUT_MS = 30_000;
setDefaultTimeout(120_000);

/** A real browser. Each page that it opens has cookies and storage of its own. */
export class TestBrowser {
  readonly #browser: Browser;

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  static async start(): Promise<TestBrowser> {
    return new TestBrowser(await connectToChromium());
  }

  async open(url: string, options: BrowserContextOptions = {}): Promise<TestPage> {
    const context = await this.#browser.newContext({ reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(TIMEOUT_MS);
    const opened = new TestPage(await context.newPage(), context, new URL(url).origin);
    await opened.page.goto(url);
    return opened;
  }

  async stop(): Promise<void> {
    await this.#browser.close();
  }
}

/** A page, and what went wrong on it. */
export class TestPage {
  readonly page: Page;
  readonly #context: BrowserContext;
  #problems: string[] = [];
  #looks = 0;

  constructor(page: Page, context: BrowserContext, origin: string) {
    this.page = page;
    this.#context = context;
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.#report("console", message.text());
    });
    page.on("pageerror", (error) => this.#report("exception", error.message));
    context.on("request", (request) => {
      if (isElsewhere(request.url(), origin)) this.#report("request to another origin", request.url());
    });
  }

  #report(kind: string, detail: string): void {
    this.#problems.push(`${kind}: ${detail}`);
  }

  /** Errors and warnings in the console, exceptions, and requests to other origins, since the last call. */
  takeProblems(): string[] {
    const problems = this.#problems;
    this.#problems = [];
    return problems;
  }

  /** What is wrong with the page: violations that axe finds, and content that is wider than the screen. */
  async look(name: string): Promise<string[]> {
    await this.screenshots(name);
    const faults: string[] = [];
    for (const appearance of PAIRS[this.#looks++ % 2 === 0 ? 0 : 1]) {
      await this.#show(appearance);
      const { theme, width } = appearance;
      const found = [...(await this.#overflow()), ...(await this.#violations())];
      faults.push(...found.map((fault) => `${theme}, ${width} px: ${fault}`));
    }
    await this.#show(APPEARANCES[0]);
    return faults;
  }

  /** Writes NAME-THEME-WIDTH.png for each appearance, if a folder for them is given. */
  async screenshots(name: string): Promise<void> {
    if (FOLDER === undefined) return;
    for (const appearance of APPEARANCES) {
      await this.#show(appearance);
      await this.#overflow();
      const path = join(FOLDER, `${name}-${appearance.theme}-${appearance.width}.png`);
      await this.page.screenshot({ path, fullPage: true });
    }
    await this.#show(APPEARANCES[0]);
  }

  async #show({ theme, width, height }: Appearance): Promise<void> {
    await this.page.setViewportSize({ width, height });
    await this.page.emulateMedia({ colorScheme: theme });
  }

  /** Plots follow the size of the screen a moment later. */
  async #overflow(): Promise<string[]> {
    const fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    return untilTrue(this.page, fits).then(
      () => [],
      () => ["the content is wider than the screen"],
    );
  }

  /** One line for each element that breaks a rule of WCAG 2.2 AA or a best practice. */
  async #violations(): Promise<string[]> {
    if ((await this.page.evaluate("typeof axe")) === "undefined") await this.page.evaluate(AXE);
    const options = JSON.stringify({ resultTypes: ["violations"], preload: false });
    const lines: unknown = await this.page.evaluate(`axe.run(document, ${options}).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
        id + " at " + target.join(" ") + ": " + failureSummary.replace(/\\s+/g, " "))))`);
    return Array.isArray(lines) ? lines.map(String) : [`axe returned ${String(lines)}`];
  }

  async close(): Promise<void> {
    await this.#context.close();
  }
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
