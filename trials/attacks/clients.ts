/*
 * Runs each client in a process of its own, so that none delays another: `NAME PORT KEY SECONDS`, with the name of an
 * attack or `good`. An attack prints READY when it has begun; the well-behaved client prints its figures as JSON.
 */

import { HttpConnection, sendOnce } from "../harness/http-connection.ts";
import { cpuWaitMs } from "../harness/processes.ts";
import { quantile } from "../harness/statistics.ts";
import { beginEvery } from "../harness/steady-load.ts";
import { attack, ATTACKS } from "./attacks.ts";

/** The time for the responses to the last requests, and for the end of the processes. */
export const GRACE_SECONDS = 15;
/**
 * The interval of two requests, one on the connection that stays open and one on a new connection: 100 a second in all.
 */
const GOOD_INTERVAL_MS = 20;

export type GoodClientFigures = Awaited<ReturnType<typeof measureGoodClient>>;

async function measureGoodClient(port: number, key: string, seconds: number) {
  const request = `GET /v1/pets HTTP/1.1\r\nHost: petstore.test\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  /** The causes of requests that did not get a 200 response. */
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

  let kept = await HttpConnection.open(port);
  const sendOnKept = async () => {
    if (!kept.isOpen) kept = await HttpConnection.open(port);
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
    /** The share of the time that the client had work but no core, which the latencies include. */
    cpuWait: (cpuWaitMs(process.pid) - waitedBefore) / (performance.now() - startedAt),
    failures,
  };
}

function latencyOf(ms: readonly number[]) {
  return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), worst: Math.max(...ms) };
}

if (import.meta.main) {
  const [name = "", port = "", key = "", seconds = ""] = process.argv.slice(2);
  if (name === "good") {
    const figures = await measureGoodClient(Number(port), key, Number(seconds));
    process.stdout.write(`FIGURES ${JSON.stringify(figures)}\n`);
  } else {
    const connections = ATTACKS.find((each) => each.name === name)?.connections?.(key);
    const mostMs = (Number(seconds) + 2 * GRACE_SECONDS) * 1_000;
    // The connections may not get what they wait for.
    const timeout = setTimeout(() => process.exit(1), mostMs);
    if (connections) await attack(Number(port), connections);
    clearTimeout(timeout);
    process.stdout.write("READY\n");
    // This process is killed before that.
    await Bun.sleep(mostMs);
  }
  process.exit(0);
}
