import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../../harness/cleanup.ts";
import { isRunning } from "../../harness/processes.ts";

/** Installing the browser, when it is missing, takes most of it. */
const TIMEOUT_MS = 300_000;
const END_TIMEOUT_MS = 20_000;

test(
  "a browser ends with the process that started it, even if that is killed",
  async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "orphaned-browser.ts")], {
      stdio: ["ignore", "pipe", "inherit"],
      // Its profile stays behind when it is killed.
      env: { ...process.env, TMPDIR: temporaryFolder("chromium") },
    });
    const { value } = await child.stdout.getReader().read();
    const pids: number[] = JSON.parse(new TextDecoder().decode(value));
    expect(pids.filter(isRunning).length).toBeGreaterThan(1);
    child.kill("SIGKILL");
    const deadline = performance.now() + END_TIMEOUT_MS;
    while (pids.some(isRunning) && performance.now() < deadline) await Bun.sleep(20);
    expect(pids.filter(isRunning)).toEqual([]);
  },
  TIMEOUT_MS,
);
