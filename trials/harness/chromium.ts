import { type Browser, chromium } from "playwright-core";
import { CHROMIUM, executable } from "./programs.ts";

/**
 * The names of hosts. Those that end in .test are this machine, so that a test can have pages on other origins. No
 * other name except localhost exists, so that no test reaches the internet.
 */
const HOSTS = "MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost";

/**
 * Features that tests do without. Chromium would load two pages for its address bar into each context, which takes as
 * much CPU time as ten pages of the console. This list replaces that of Playwright; the others here are what pages
 * notice of it.
 */
const DISABLED_FEATURES = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "AimEnabled",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "PreconnectToSearch",
  "ThirdPartyStoragePartitioning",
];

/** The test runner sets this variable, so that all test files share one browser. */
export const BROWSER_VARIABLE = "PETSTORE_TEST_BROWSER";

/**
 * Starts a headless Chromium, and returns the address for tests. It is controlled over a pipe and ends when the pipe
 * closes, so it never outlives this process. The signals of this process are left to its own handlers.
 */
export async function startChromium(): Promise<string> {
  const server = await chromium.launchServer({
    executablePath: executable(CHROMIUM),
    args: [`--host-resolver-rules=${HOSTS}`, `--disable-features=${DISABLED_FEATURES.join(",")}`],
    timeout: 60_000,
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  return server.wsEndpoint();
}

/** Connects to the browser that tests share. Each context has its own cookies and storage. */
export async function connectToChromium(): Promise<Browser> {
  return chromium.connect(process.env[BROWSER_VARIABLE] ?? (await startChromium()));
}
