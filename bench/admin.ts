/*
 * Measures the console and /metrics with 10,000 keys and 400 days of usage history, on SQLite:
 * `npm run bench:admin [-- --check] [-- --docs] [-- --pages Keys]`, two to four minutes. `--check` exits with 1 if a
 * bar is missed; `--pages` measures the pages with that text in their names.
 */

import { isGiven, runCommand, text, UsageError } from "../trials/harness/command-line.ts";
import { HttpConnection } from "../trials/harness/http-connection.ts";
import { chooseCores, machineNow, pinThisProcessTo } from "../trials/harness/machine.ts";
import { type PetstoreServer, startPetstore } from "../trials/harness/petstore.ts";
import { residentMb } from "../trials/harness/processes.ts";
import { median, quantile } from "../trials/harness/statistics.ts";
import { type Bar, checkBars, formatFigure, publishTables, tableOf } from "../trials/harness/table.ts";
import { DAY_MS } from "../src/text/time-units.ts";
import { type AdminData, DAYS, fillAdminData, KEYS } from "./admin-data.ts";

/** The number of servers that are started to measure the first call of each page. */
const RESTARTS = 3;
const WARM_CALLS = 30;
const RATE_WAIT_MS = 2_000;
const MEMORY_ROUNDS = 3;
/** The time after which an idle server has collected its garbage and returned the memory: about 12 s. */
const IDLE_MS = 15_000;
/** A server without the listener has no garbage to collect: after 2 s it has the memory that it has after 30 s. */
const IDLE_WITHOUT_MS = 2_000;
const BARS = {
  pageMs: 300,
  waitMs: 50,
  firstWaitMs: 300,
  metricsMs: 20,
  metricsKb: 200,
  memoryMb: 20,
} as const;
const METRICS = "/metrics";

/** A page of the console: the paths that it requests first, and then those that it derives from the responses. */
interface AdminPage {
  readonly name: string;
  readonly steps: readonly (readonly string[])[];
}

const KEY = KEYS / 2;
/** The path that every page requests. */
const SERVER = "/api/server";
const NOW = Date.now();
const MONTH_AGO = new Date(NOW - 30 * DAY_MS).toISOString();

const page = (name: string, path: string): AdminPage => ({ name, steps: [[SERVER, path]] });

function keyPage(name: string, by: "hour" | "day", days: number): AdminPage {
  const since = NOW - days * DAY_MS + (by === "day" ? DAY_MS : DAY_MS / 24);
  const period = `by=${by}&since=${new Date(since).toISOString()}&until=${new Date(NOW).toISOString()}`;
  return {
    name,
    steps: [
      [SERVER, `/api/keys/${KEY}`],
      [`/api/keys/${KEY}/usage?${period}`, `/api/audit?target=key%3A${KEY}&limit=10`],
    ],
  };
}

/** The pages, which request what src/console/pages and src/console/components do, and /metrics. */
const PAGES: readonly AdminPage[] = [
  page("Overview, 1 h", "/api/overview?range=1h"),
  page("Overview, 24 h", "/api/overview?range=24h"),
  page("Keys", "/api/keys?limit=50"),
  page("Keys, search", "/api/keys?search=customer%2099&limit=50"),
  page("Keys, search without a match", "/api/keys?search=nobody&limit=50"),
  page("Keys, banned", "/api/keys?state=banned&limit=50"),
  page("Keys, not used for 30 days", `/api/keys?unusedSince=${MONTH_AGO}&limit=50`),
  page("Keys, deprecated calls", `/api/keys?deprecatedSince=${MONTH_AGO}&limit=50`),
  page("Keys by name", "/api/keys?sort=name&order=desc&limit=50"),
  page("Keys by last use", "/api/keys?sort=lastUsedAt&order=desc&limit=50"),
  page("Keys by use today", "/api/keys?sort=usedToday&order=desc&limit=50"),
  page("Keys close to a limit", "/api/keys?state=active&usedPercent=80&limit=50"),
  keyPage("Key, 30 days by day", "day", 30),
  keyPage("Key, 7 days by hour", "hour", 7),
  keyPage("Key, 400 days by day", "day", 400),
  page("Pets", "/api/pets?limit=50"),
  {
    name: "Pet",
    steps: [
      [SERVER, "/api/pets/77"],
      ["/api/orders?petId=77&limit=10", "/api/audit?target=pet%3A77&limit=10"],
    ],
  },
  page("Orders", "/api/orders?limit=50"),
  { name: "Order", steps: [[SERVER, "/api/orders/77"], ["/api/audit?target=order%3A77&limit=10"]] },
  page("Audit", "/api/audit?limit=50"),
  page("Audit of one action", "/api/audit?action=key.banned&limit=50"),
  page("Settings", "/api/settings"),
  // No page requests this yet; a program for billing would.
  page("Usage of 100 keys, 30 days (API)", "/api/usage"),
  page("Usage of all keys, 30 days (API)", `/api/usage?limit=${KEYS}`),
  { name: METRICS, steps: [["/metrics"]] },
];

/** Sends GET /healthz requests, one after the other, until `isOver`. Returns the longest time. */
async function longestWait(connection: HttpConnection, isOver: () => boolean): Promise<number> {
  let longest = 0;
  while (!isOver()) {
    const sentAt = performance.now();
    await connection.send({ path: "/healthz" });
    longest = Math.max(longest, performance.now() - sentAt);
  }
  return longest;
}

/**
 * Opens connections before the time starts, as a browser does. The client of the public API has had a response before,
 * so that what it waits for later is the work of the listener for operators, and not its own first request.
 */
async function connect({ url, adminUrl }: PetstoreServer, token: string) {
  const { host, port } = new URL(adminUrl);
  const connections = await Promise.all([1, 2, 3].map(() => HttpConnection.open(Number(port))));
  const publicConnection = await HttpConnection.open(Number(new URL(url).port));
  await publicConnection.send({ path: "/healthz" });
  const head = `HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;

  return {
    async call(page: AdminPage): Promise<Call> {
      const { name, steps } = page;
      let isOver = false;
      const wait = longestWait(publicConnection, () => isOver);
      const startedAt = performance.now();
      let bytes = 0;
      for (const paths of steps) {
        const responses = await Promise.all(
          paths.map((path, i) => connections[i]?.sendText(`GET ${path} ${head}`)),
        );
        if (responses.some((response) => response?.status === 429)) {
          // The rate of the operator is used up. This call does not count.
          isOver = true;
          await wait;
          await Bun.sleep(RATE_WAIT_MS);
          return this.call(page);
        }
        for (const response of responses) {
          if (response?.status !== 200) throw new Error(`${name}: ${response?.status} ${response?.body}`);
          bytes += response.bytes;
        }
      }
      const ms = performance.now() - startedAt;
      isOver = true;
      // `waitMs` is the longest time that a client of the public API waited for a response meanwhile.
      return { ms, bytes, waitMs: await wait };
    },
    close() {
      for (const connection of [...connections, publicConnection]) connection.close();
    },
  };
}

interface Call {
  readonly ms: number;
  readonly bytes: number;
  readonly waitMs: number;
}
type Summary = ReturnType<typeof summaryOf>;

/** The figures of a page. `first` are the first calls after a start. */
function summaryOf(name: string, first: readonly Call[], others: readonly Call[]) {
  const valuesOf = (calls: readonly Call[], figure: keyof Call) => calls.map((call) => call[figure]);
  return {
    name,
    firstMs: median(valuesOf(first, "ms")),
    medianMs: median(valuesOf(others, "ms")),
    p99Ms: quantile(valuesOf(others, "ms"), 0.99),
    firstWaitMs: Math.min(...valuesOf(first, "waitMs")),
    waitMs: median(valuesOf(others, "waitMs")),
    kb: (others[0]?.bytes ?? 0) / 1_000,
  };
}

interface Setup {
  readonly data: AdminData;
  readonly core: string | undefined;
}

/** Runs work on a server. `admin` is the address of the listener for operators, or `off`. */
async function onServer<T>(
  { data, core }: Setup,
  admin: string,
  work: (server: PetstoreServer) => Promise<T>,
): Promise<T> {
  const { directory, tokenFile } = data;
  const flags = ["--port", "0", "--admin-address", admin, "--admin-token-file", tokenFile];
  const pinned = core === undefined ? [] : ["taskset", "-c", core];
  const server = await startPetstore(["--data", directory, ...flags], pinned);
  const result = await work(server);
  await server.stop();
  return result;
}

async function measure(pages: readonly AdminPage[], setup: Setup): Promise<readonly Summary[]> {
  const summaries: Summary[] = [];
  for (const page of pages) {
    const [first, others]: [Call[], Call[]] = [[], []];
    process.stderr.write(`${page.name}\n`);
    for (let i = 0; i < RESTARTS; i++)
      await onServer(setup, "127.0.0.1:0", async (server) => {
        const client = await connect(server, setup.data.token);
        first.push(await client.call(page));
        while (others.length < WARM_CALLS) others.push(await client.call(page));
        client.close();
      });
    summaries.push(summaryOf(page.name, first, others));
  }
  return summaries;
}

type Memory = Awaited<ReturnType<typeof measureMemory>>;

/**
 * Measures the resident memory of an idle server after every page was requested several times, and that of a server
 * without the listener that responded to GET /healthz for as long. Both are in MB.
 */
async function measureMemory(setup: Setup) {
  const [withListener, without]: [number[], number[]] = [[], []];
  for (let i = 0; i < RESTARTS; i++) {
    process.stderr.write(`memory, ${i + 1} of ${RESTARTS}\n`);
    let workMs = 0;
    await onServer(setup, "127.0.0.1:0", async (server) => {
      const client = await connect(server, setup.data.token);
      const startedAt = performance.now();
      for (let round = 0; round < MEMORY_ROUNDS; round++) for (const page of PAGES) await client.call(page);
      workMs = performance.now() - startedAt;
      await Bun.sleep(IDLE_MS);
      withListener.push(residentMb(server.pid));
      client.close();
    });
    await onServer(setup, "off", async ({ url, pid }) => {
      const connection = await HttpConnection.open(Number(new URL(url).port));
      const end = performance.now() + workMs;
      await longestWait(connection, () => performance.now() >= end);
      await Bun.sleep(IDLE_WITHOUT_MS);
      without.push(residentMb(pid));
      connection.close();
    });
  }
  return { withListener: median(withListener), without: median(without) };
}

function barsOf(pages: readonly Summary[], { withListener, without }: Memory): readonly Bar[] {
  const ofPages = pages.flatMap(({ name, firstMs, p99Ms, firstWaitMs, waitMs, kb }): Bar[] => {
    const most = name === METRICS ? BARS.metricsMs : BARS.pageMs;
    return [
      { name: `${name}, first call, ms`, value: firstMs, most },
      { name: `${name}, p99, ms`, value: p99Ms, most },
      { name: `${name}, first call, wait of others, ms`, value: firstWaitMs, most: BARS.firstWaitMs },
      { name: `${name}, wait of others, ms`, value: waitMs, most: BARS.waitMs },
      ...(name === METRICS ? [{ name: `${name}, kB`, value: kb, most: BARS.metricsKb }] : []),
    ];
  });
  return [...ofPages, { name: "memory, MB more", value: withListener - without, most: BARS.memoryMb }];
}

const figure = (name: Exclude<keyof Summary, "name">) => (page: Summary) => formatFigure(page[name]);

const COLUMNS = {
  page: ({ name }: Summary) => name,
  "first call, ms": figure("firstMs"),
  "median, ms": figure("medianMs"),
  "p99, ms": figure("p99Ms"),
  "wait, first, ms": figure("firstWaitMs"),
  "wait, ms": figure("waitMs"),
  kB: figure("kb"),
};

await runCommand({
  name: "bench:admin",
  flags: { docs: isGiven, check: isGiven, pages: text },
  maxMinutes: 5,
  async main({ docs, check, pages: only = "" }) {
    const chosen = PAGES.filter(({ name }) => name.includes(only));
    if (chosen.length === 0) throw new UsageError(`--pages: no page has "${only}" in its name`);
    const before = machineNow();
    const cores = chooseCores();
    process.stderr.write(`filling the database\n`);
    const setup = { data: fillAdminData(), core: cores?.server };
    if (cores) pinThisProcessTo(cores.load);
    const pages = await measure(chosen, setup);
    const memory = await measureMemory(setup);
    const [withListener, without] = [memory.withListener, memory.without].map((mb) => mb.toFixed(0));
    const title = `The console and /metrics with ${KEYS.toLocaleString("en")} keys`;
    const note = `SQLite, ${DAYS} days of usage history in which every key was used in every hour. The first call is the first after a start (median of ${RESTARTS}), the others follow it (${WARM_CALLS} calls). Waits are the longest that GET /healthz took meanwhile, of a client that had a response before: of the first call in the best of the starts, of the others the median. ${withListener} MB resident ${IDLE_MS / 1_000} seconds after all pages, ${without} MB without the listener. The server has one core. Before the run: ${before}.`;
    const table = { ...tableOf(title, pages, COLUMNS), note };
    publishTables([table], docs && { file: "bench/results.md", name: "console" });
    return checkBars(barsOf(pages, memory), check);
  },
});
