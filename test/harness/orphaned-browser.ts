import { startChromium } from "../../harness/chromium.ts";
import { processTree } from "../../harness/processes.ts";

/** Starts a browser with a page, prints the identifiers of its processes, and waits to be killed. */
const before = new Set(processTree(process.pid));
const browser = await startChromium();
await (await browser.newPage()).goto("data:text/html,open");
console.log(JSON.stringify(processTree(process.pid).filter((pid) => !before.has(pid))));
setInterval(() => {}, 1_000);
