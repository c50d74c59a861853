/**
 * The console and /metrics with 10,000 keys and 400 days of usage history, on SQLite:
 * `npm run bench:admin [-- --check] [-- --docs] [-- --pages Keys]`, two to four minutes. `--check` exits with 1 if a
 * bar is missed; `--pages` measures those with the text in their names.
 */
import { limitRunTime, parseFlags, runCommand, UsageError } from "../harness/command-line.ts";
import { replaceSection } from "../harness/document-section.ts";
import { HttpConnection } from "../harness/http-connection.ts";
import {
  chooseCores,
  describeMachine,
  type Machine,
  machineText,
  pinThisProcessTo,
} from "../harness/machine.ts";
import { startPetstore } from "../harness/petstore.ts";
import { residentMb } from "../harness/processes.ts";
import { median, quantile } from "../harness/statistics.ts";
import { formatFigure, markdownTable, plainTable, type Table } from "../harness/table.ts";
import { connect, longestWait } from "./admin-client.ts";
import { type AdminData, DAYS, fillAdminData, KEYS } from "./admin-data.ts";
import { type AdminPage, consolePages } from "./admin-pages.ts";

const MAX_RUN_MS = 300_000;
/** Servers that are started for the first call of each page. */
const RESTARTS = 3;
const WARM_CALLS = 30;
const MEMORY_ROUNDS = 3;
const IDLE_MS = 2_000;
/** By then the garbage of the pages has been collected. */
const COLLECTED_MS = 20_000;
const BARS = { pageMs: 100, waitMs: 10, metricsMs: 20, metricsKb: 200, memoryMb: 20 } as const;
const METRICS: AdminPage = { name: "/metrics", steps: [["/metrics"]] };

interface Figures {
  readonly page: AdminPage;
  /** Of the first call after a start, of each start. */
  readonly cold: number[];
  readonly warm: number[];
  /** The longest wait of a client of the public API during each call. */
  readonly coldWaits: number[];
  readonly warmWaits: number[];
  bytes: number;
}

async function start({ folder, tokenFile }: AdminData, admin: string, core: string | undefined) {
  const pinned = core === undefined ? [] : ["taskset", "-c", core];
  return startPetstore(
    ["--data", folder, "--port", "0", "--admin-address", admin, "--admin-token-file", tokenFile],
    pinned,
  );
}

async function measure(
  pages: readonly AdminPage[],
  data: AdminData,
  core: string | undefined,
): Promise<readonly Figures[]> {
  const figures = pages.map((page): Figures => ({
    page,
    cold: [],
    warm: [],
    coldWaits: [],
    warmWaits: [],
    bytes: 0,
  }));
  for (const each of figures) {
    process.stderr.write(`${each.page.name}\n`);
    for (let i = 0; i < RESTARTS; i++) {
      const server = await start(data, "127.0.0.1:0", core);
      const client = await connect({ ...server, token: data.token });
      const { ms, waitMs } = await client.call(each.page);
      each.cold.push(ms);
      each.coldWaits.push(waitMs);
      const warmCalls = i === 0 ? WARM_CALLS : 0;
      for (let call = 0; call < warmCalls; call++) {
        const warm = await client.call(each.page);
        each.warm.push(warm.ms);
        each.warmWaits.push(warm.waitMs);
        each.bytes = warm.bytes;
      }
      client.close();
      await server.stop();
    }
  }
  return figures;
}

/** In MB. */
interface Memory {
  readonly withListener: number;
  readonly afterCollection: number;
  readonly without: number;
}

/**
 * Resident memory two seconds and twenty seconds after every page was asked for some times, and that of a server
 * without the listener that responded to GET /healthz for as long.
 */
async function measureMemory(data: AdminData, core: string | undefined): Promise<Memory> {
  const withListener: number[] = [];
  const afterCollection: number[] = [];
  const without: number[] = [];
  for (let i = 0; i < RESTARTS; i++) {
    process.stderr.write(`memory, ${i + 1} of ${RESTARTS}\n`);
    const server = await start(data, "127.0.0.1:0", core);
    const client = await connect({ ...server, token: data.token });
    const startedAt = performance.now();
    for (let round = 0; round < MEMORY_ROUNDS; round++) {
      for (const page of [...consolePages(), METRICS]) await client.call(page);
    }
    const end = performance.now() - startedAt;
    await Bun.sleep(IDLE_MS);
    withListener.push(residentMb(server.pid));
    await Bun.sleep(COLLECTED_MS - IDLE_MS);
    afterCollection.push(residentMb(server.pid));
    client.close();
    await server.stop();

    const other = await start(data, "off", core);
    const connection = await HttpConnection.open(Number(new URL(other.url).port));
    const otherStartedAt = performance.now();
    await longestWait(connection, () => performance.now() - otherStartedAt >= end);
    await Bun.sleep(IDLE_MS);
    without.push(residentMb(other.pid));
    connection.close();
    await other.stop();
  }
  return {
    withListener: median(withListener),
    afterCollection: median(afterCollection),
    without: median(without),
  };
}

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly most: number;
}

function barsOf(figures: readonly Figures[], { withListener, without }: Memory): readonly Bar[] {
  const ofPages = figures.flatMap(({ page: { name }, cold, warm, coldWaits, warmWaits, bytes }): Bar[] => {
    const most = name === METRICS.name ? BARS.metricsMs : BARS.pageMs;
    return [
      { name: `${name}, first call, ms`, value: median(cold), most },
      { name: `${name}, p99, ms`, value: quantile(warm, 0.99), most },
      { name: `${name}, first call, wait of others, ms`, value: Math.min(...coldWaits), most: BARS.waitMs },
      { name: `${name}, wait of others, ms`, value: median(warmWaits), most: BARS.waitMs },
      ...(name === METRICS.name ? [{ name: `${name}, kB`, value: bytes / 1_000, most: BARS.metricsKb }] : []),
    ];
  });
  return [...ofPages, { name: "memory, MB more", value: withListener - without, most: BARS.memoryMb }];
}

function tableOf(figures: readonly Figures[], memoryMb: Memory, machine: Machine): Table {
  const { withListener, afterCollection, without } = memoryMb;
  const memory = `${withListener.toFixed(0)} MB resident two seconds after all pages, ${afterCollection.toFixed(0)} MB after ${COLLECTED_MS / 1_000}, ${without.toFixed(0)} MB without the listener`;
  return {
    title: `The console and /metrics with ${KEYS.toLocaleString("en")} keys`,
    note: `SQLite, ${DAYS} days of usage history in which every key was used in every hour. The first call is the first after a start (median of ${RESTARTS}), the others follow it (${WARM_CALLS} calls). Waits are the longest that GET /healthz took meanwhile, of a client that had a response before: of the first call in the best of the starts, of the others the median. ${memory}. ${machineText(machine)}, Bun ${Bun.version}; the server has one core. Load average before the run: ${machine.load}.`,
    header: ["page", "first call, ms", "median, ms", "p99, ms", "wait, first, ms", "wait, ms", "kB"],
    rows: figures.map(({ page, cold, warm, coldWaits, warmWaits, bytes }) => [
      page.name,
      ...[median(cold), median(warm), quantile(warm, 0.99), Math.min(...coldWaits), median(warmWaits)].map(
        formatFigure,
      ),
      formatFigure(bytes / 1_000),
    ]),
  };
}

await runCommand("bench:admin", async (args) => {
  const {
    docs,
    check,
    pages: only,
  } = parseFlags(args, {
    docs: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    pages: { type: "string", default: "" },
  });
  const pages = [...consolePages(), METRICS].filter(({ name }) => name.includes(only));
  if (pages.length === 0) throw new UsageError(`--pages: no page has "${only}" in its name`);
  limitRunTime(MAX_RUN_MS);
  const machine = describeMachine();
  const cores = chooseCores();
  process.stderr.write(`filling the database\n`);
  const data = fillAdminData();
  if (cores) pinThisProcessTo(cores.load);
  const figures = await measure(pages, data, cores?.server);
  const memory = await measureMemory(data, cores?.server);
  const table = tableOf(figures, memory, machine);
  process.stdout.write(plainTable(table));
  if (docs) replaceSection("bench/results.md", "console", markdownTable(table));
  const missed = barsOf(figures, memory).filter(({ value, most }) => value > most);
  for (const { name, value, most } of missed) {
    process.stdout.write(`missed: ${name}: ${formatFigure(value)}, at most ${most}\n`);
  }
  return check && missed.length > 0 ? 1 : 0;
});
