/**
 * A process of its own for each client, so that none makes another one late. It prints its figures as JSON.
 * `attack NAME PORT KEY SECONDS`, `good PORT KEY SECONDS`, `free-key PORT,PORT KEY SECONDS`
 */
import { HttpConnection, sendOnce } from "../harness/http-connection.ts";
import { cpuWaitMs } from "../harness/processes.ts";
import { quantile } from "../harness/statistics.ts";
import { beginEvery } from "../harness/steady-load.ts";
import { ATTACKS } from "./attacks.ts";

const requestWith = (key: string, path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: petstore.test\r\nAuthorization: Bearer ${key}\r\n\r\n`;

/** Runs until SIGTERM, or at most for the time given. */
async function attack(name: string, port: number, key: string, seconds: number): Promise<void> {
  const chosen = ATTACKS.find((each) => each.name === name);
  if (chosen === undefined) throw new Error(`${name} is no attack`);
  const end = new AbortController();
  process.on("SIGTERM", () => end.abort());
  setTimeout(() => end.abort(), seconds * 1_000).unref();
  await chosen.run({ host: "127.0.0.1", port, key }, end.signal, () => process.stdout.write("READY\n"));
}

/** One request on the connection that stays open, and one on a new connection: 100 a second in all. */
const GOOD_INTERVAL_MS = 20;

export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
  readonly requests: number;
}

export type GoodClientFigures = Awaited<ReturnType<typeof measureGoodClient>>;

async function measureGoodClient(port: number, key: string, seconds: number) {
  const request = requestWith(key, "/v1/pets");
  /** Causes of requests that did not get status 200. */
  const failures: string[] = [];
  const measure = async (send: () => Promise<{ status: number }>, latencies: number[]) => {
    const startedAt = performance.now();
    try {
      const { status } = await send();
      if (status !== 200) failures.push(`status ${status}`);
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
    latencies.push(performance.now() - startedAt);
  };

  let kept: HttpConnection | undefined = await HttpConnection.open(port);
  const sendOnKept = async () => {
    if (kept?.isOpen !== true) kept = await HttpConnection.open(port);
    return kept.sendText(request);
  };
  const [onKept, onNew]: [number[], number[]] = [[], []];
  const [startedAt, waitedBefore] = [performance.now(), cpuWaitMs(process.pid)];
  const both = async () => {
    await Promise.all([measure(sendOnKept, onKept), measure(() => sendOnce(port, request), onNew)]);
  };
  await beginEvery(GOOD_INTERVAL_MS, both, { count: (seconds * 1_000) / GOOD_INTERVAL_MS });
  kept.close();
  return {
    keptConnection: latencyOf(onKept),
    newConnections: latencyOf(onNew),
    /** Share of the time that the client had work but no core: the latencies contain it. */
    cpuWait: (cpuWaitMs(process.pid) - waitedBefore) / (performance.now() - startedAt),
    failures,
  };
}

function latencyOf(ms: readonly number[]): Latency {
  return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), worst: Math.max(...ms), requests: ms.length };
}

const FREE_KEY_INTERVAL_MS = 40;
/** All requests are in one window. */
const MAX_SECONDS = 40;
/** Where many requests fail, so many more are sent until one is rejected. */
const MAX_EXTRA_REQUESTS = 200;

/** What a client got that sends more requests than its key allows, to all servers in turns. */
export type FreeKeyFigures = Awaited<ReturnType<typeof measureFreeKey>>;

async function measureFreeKey(ports: readonly number[], key: string, seconds: number) {
  /** Failed: neither 200 nor 429. */
  const figures = { allowed: 0, rejected: 0, failed: 0 };
  const request = requestWith(key, "/v1/pets?limit=1");
  const send = async (number: number) => {
    const response = await sendOnce(ports[number % ports.length] ?? 0, request).catch(() => undefined);
    if (response?.status === 200) figures.allowed++;
    else if (response?.status === 429) figures.rejected++;
    else figures.failed++;
  };
  const count = (Math.min(seconds, MAX_SECONDS) * 1_000) / FREE_KEY_INTERVAL_MS;
  await beginEvery(FREE_KEY_INTERVAL_MS, send, { count });
  for (let number = 0; figures.rejected === 0 && number < MAX_EXTRA_REQUESTS; number++) await send(number);
  return figures;
}

if (import.meta.main) {
  const [client, ...args] = process.argv.slice(2);
  const name = client === "attack" ? args.shift() : undefined;
  const [ports = "", key = "", seconds = ""] = args;
  const [port = 0, ...others] = ports.split(",").map(Number);
  if (name !== undefined) await attack(name, port, key, Number(seconds));
  else {
    const figures =
      client === "good"
        ? await measureGoodClient(port, key, Number(seconds))
        : await measureFreeKey([port, ...others], key, Number(seconds));
    process.stdout.write(`FIGURES ${JSON.stringify(figures)}\n`);
  }
  process.exit(0);
}
