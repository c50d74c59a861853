import { type Browser, chromium } from "playwright-core";
import { chromiumExecutable } from "./programs.ts";

/**
 * Names that end in .test are this machine, so that a test can have pages on other origins. Every other name but
 * localhost does not exist: no test reaches the internet.
 */
const HOSTS = "MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost";
const LAUNCH_TIMEOUT_MS = 60_000;

/**
 * A headless Chromium. It is controlled over a pipe and ends when the pipe closes, so it never outlives this process.
 * Signals of this process are left to its own handlers.
 */
export function startChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumExecutable(),
    args: [`--host-resolver-rules=${HOSTS}`],
    timeout: LAUNCH_TIMEOUT_MS,
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
}
