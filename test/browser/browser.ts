import axe from "axe-core";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { connectToChromium } from "../../harness/chromium.ts";
import { temporaryFolder } from "../../harness/cleanup.ts";

/** Every page is looked at in both themes, on a wide screen and on a phone. */
const APPEARANCES = [
  { theme: "light", width: 1280, height: 800 },
  { theme: "dark", width: 1280, height: 800 },
  { theme: "light", width: 390, height: 844 },
  { theme: "dark", width: 390, height: 844 },
] as const;
type Appearance = (typeof APPEARANCES)[number];

/** How long an action waits for its element, and a navigation for its page. */
const TIMEOUT_MS = 15_000;

/** A real browser. Each page that it opens has cookies and storage of its own. */
export class TestBrowser {
  readonly #browser: Browser;
  /** Where screenshots are written. It is removed at the end, unless PETSTORE_TEST_SCREENSHOTS names it. */
  readonly folder: string;

  private constructor(browser: Browser, folder: string) {
    this.#browser = browser;
    this.folder = folder;
  }

  static async start(): Promise<TestBrowser> {
    const given = process.env.PETSTORE_TEST_SCREENSHOTS;
    const folder = given ?? temporaryFolder("screenshots");
    mkdirSync(folder, { recursive: true });
    return new TestBrowser(await connectToChromium(), folder);
  }

  async open(url: string, options: BrowserContextOptions = {}): Promise<TestPage> {
    const context = await this.#browser.newContext({ reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(TIMEOUT_MS);
    const opened = new TestPage({ page: await context.newPage(), context, url, folder: this.folder });
    await opened.page.goto(url);
    return opened;
  }

  async stop(): Promise<void> {
    await this.#browser.close();
  }
}

interface TestPageOptions {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly url: string;
  readonly folder: string;
}

/** A page, and what went wrong on it. */
export class TestPage {
  readonly page: Page;
  readonly #context: BrowserContext;
  readonly #folder: string;
  #problems: string[] = [];

  constructor({ page, context, url, folder }: TestPageOptions) {
    this.page = page;
    this.#context = context;
    this.#folder = folder;
    const { origin } = new URL(url);
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

  /**
   * Writes a screenshot of each appearance, NAME-THEME-WIDTH.png, and returns what is wrong with any of them:
   * violations that axe finds, and content that is wider than the screen.
   */
  async look(name: string): Promise<string[]> {
    const faults: string[] = [];
    for (const appearance of APPEARANCES) {
      const { theme, width } = appearance;
      await this.#show(appearance);
      await this.page.screenshot({
        path: join(this.#folder, `${name}-${theme}-${width}.png`),
        fullPage: true,
      });
      const found = [...(await this.#overflow()), ...(await this.#violations())];
      faults.push(...found.map((fault) => `${theme}, ${width} px: ${fault}`));
    }
    await this.#show(APPEARANCES[0]);
    return faults;
  }

  async #show({ theme, width, height }: Appearance): Promise<void> {
    await this.page.setViewportSize({ width, height });
    await this.page.emulateMedia({ colorScheme: theme });
  }

  async #overflow(): Promise<string[]> {
    const pageWidth = await this.page.evaluate("document.documentElement.scrollWidth");
    const screenWidth = await this.page.evaluate("document.documentElement.clientWidth");
    return Number(pageWidth) > Number(screenWidth) ? [`the content is ${pageWidth} px wide`] : [];
  }

  /** One line for each element that breaks a rule of WCAG 2.2 AA or a best practice. */
  async #violations(): Promise<string[]> {
    if ((await this.page.evaluate("typeof axe")) === "undefined") await this.page.evaluate(axe.source);
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
