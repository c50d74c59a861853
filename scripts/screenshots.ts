/*
 * Takes the pictures of the documentation: `npm run screenshots`, sixteen minutes. It starts the demo, waits until its
 * clients fill the plots of the console, and writes docs/images with a Chromium. `-- --minutes 1` is for a quick check.
 */

import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { rateLimitFigure } from "../docs/rate-limit-figure.ts";
import { Child } from "../trials/harness/child.ts";
import { connectToChromium } from "../trials/harness/chromium.ts";
import { integer, runCommand } from "../trials/harness/command-line.ts";

const ROOT = join(import.meta.dir, "..");
const IMAGES = join(ROOT, "docs/images");
const WIDTH = 1280;
const MAX_BYTES = 200_000;
/** The overview covers 15 minutes. */
const DEFAULT_MINUTES = 16;
const MAX_MINUTES = 60;

interface Picture {
  readonly file: string;
  readonly url: string;
  /** The selector of an element that appears when the page is complete. */
  readonly ready: string;
  readonly height: number;
}

/** Takes a picture. `whenFilled` resolves when the page has data. A page that signs in opens earlier: codes expire. */
async function take(
  browser: Browser,
  { file, url, ready, height }: Picture,
  whenFilled: Promise<void>,
): Promise<void> {
  const context = await browser.newContext({
    viewport: { width: WIDTH, height },
    colorScheme: "light",
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  await page.goto(url);
  await whenFilled;
  await page.locator(ready).first().waitFor();
  await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => {});
  const path = join(IMAGES, file);
  await page.screenshot({ path });
  await context.close();
  const { size } = statSync(path);
  if (size > MAX_BYTES) throw new Error(`${file} has ${size} bytes, more than ${MAX_BYTES}`);
  process.stdout.write(`docs/images/${file}: ${size} bytes\n`);
}

await runCommand({
  name: "screenshots",
  flags: { minutes: integer(DEFAULT_MINUTES, MAX_MINUTES) },
  async main({ minutes }) {
    mkdirSync(IMAGES, { recursive: true });
    await Bun.write(join(ROOT, "docs/rate-limits.svg"), await rateLimitFigure());

    const demo = new Child([join(ROOT, "petstore"), "demo"], { quit: "SIGINT" });
    const [[, consoleUrl = ""], [, docsUrl = ""]] = await Promise.all([
      demo.line(/Console\s+(\S+)/),
      demo.line(/Docs\s+(\S+)/),
    ]);
    process.stdout.write(`The clients of the demo send requests for ${minutes} min.\n`);
    const whenFilled = Bun.sleep(minutes * 60_000);

    const browser = await connectToChromium();
    const overview = { file: "console.png", url: consoleUrl, ready: "canvas", height: 852 };
    const reference = {
      file: "docs-page.png",
      url: `${docsUrl}/reference/createPet`,
      ready: "h1",
      height: 744,
    };
    await take(browser, overview, whenFilled);
    await take(browser, reference, whenFilled);
    await browser.close();
    await demo.stop("SIGINT");
    return 0;
  },
});
