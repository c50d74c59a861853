import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestBrowser } from "./browser.ts";

let browser: TestBrowser;
/** Installing the browser, when it is missing, takes most of it. */
const START_TIMEOUT_MS = 300_000;
beforeAll(async () => void (browser = await TestBrowser.start()), START_TIMEOUT_MS);
afterAll(() => browser.stop());

const TIMEOUT_MS = 120_000;

test(
  "the browser reports console errors, exceptions, requests to other origins, axe violations and overflow",
  async () => {
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response(FAULTY_PAGE, { headers: { "Content-Type": "text/html" } }),
    });
    try {
      const faulty = await browser.open(server.url.href);
      await faulty.page.waitForFunction("document.title === 'done'");
      const problems = faulty.takeProblems().join("\n");
      expect(problems).toContain("console: a console error");
      expect(problems).toContain("exception: an exception");
      expect(problems).toContain("request to another origin: http://elsewhere.test/image.png");
      expect(faulty.takeProblems()).toEqual([]);
      const faults = (await faulty.look("faulty")).join("\n");
      expect(faults).toContain("light, 1280 px: image-alt at img");
      expect(faults).toContain("dark, 390 px: the content is ");
      await faulty.close();
    } finally {
      await server.stop(true);
    }
  },
  TIMEOUT_MS,
);

const FAULTY_PAGE = `<!doctype html><html lang="en"><title>faulty</title><main><h1>Faulty</h1>
<img src="http://elsewhere.test/image.png"><div style="width: 500px">wide</div></main>
<script>
  console.error("a console error");
  setTimeout(() => { throw new Error("an exception"); });
  document.querySelector("img").onerror = () => { document.title = "done"; };
</script>`;
