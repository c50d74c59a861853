import { type Browser, chromium } from "playwright-core";
import { CHROMIUM, executable } from "./programs.ts";

/**
 * Names that end in .test are this machine, so that a test can have pages on other origins. Every other name but
 * localhost does not exist: no test reaches the internet.
 */
const HOSTS = "MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost";

/** Set by the test runner, so that all test files share one browser. */
export const BROWSER_VARIABLE = "PETSTORE_TEST_BROWSER";

/**
 * A headless Chromium. It is controlled over a pipe and ends when the pipe closes, so it never outlives this process.
 * Signals of this process are left to its own handlers. Gives the address at which tests connect to it.
 */
export async function startChromium(): Promise<string> {
  const server = await chromium.launchServer({
    executablePath: executable(CHROMIUM),
    args: [`--host-resolver-rules=${HOSTS}`],
    timeout: 60_000,
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  return server.wsEndpoint();
}

/** The browser that tests share. Each context has cookies and storage of its own. */
export async function connectToChromium(): Promise<Browser> {
  return chromium.connect(process.env[BROWSER_VARIABLE] ?? (await startChromium()));
}
