import { sendOnce } from "../harness/http-connection.ts";
import { cpuWaitMs } from "../harness/processes.ts";
import { quantile } from "../harness/statistics.ts";
import { PipelinedConnection } from "./pipelined-connection.ts";

/**
 * Every 20 ms one request on the connection that stays open, and one on a new connection: 100 a second in all. A late
 * response does not delay the next request.
 */
const INTERVAL_MS = 20;

export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
  readonly requests: number;
}

export interface GoodClientFigures {
  readonly keptConnection: Latency;
  readonly newConnections: Latency;
  /** Share of the time that the client had work but no core: the latencies contain it. */
  readonly cpuWait: number;
  /** Causes of requests that did not get status 200. */
  readonly failures: readonly string[];
}

interface GoodClientOptions {
  readonly port: number;
  readonly key: string;
  readonly seconds: number;
}

export async function measureGoodClient(options: GoodClientOptions): Promise<GoodClientFigures> {
  const { port, key, seconds } = options;
  const request = `GET /v1/pets HTTP/1.1\r\nHost: petstore.test\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  const failures: string[] = [];
  const measure = async (send: () => Promise<number>, latencies: number[]) => {
    const startedAt = performance.now();
    try {
      const status = await send();
      if (status !== 200) failures.push(`status ${status}`);
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
    latencies.push(performance.now() - startedAt);
  };

  let connection = new PipelinedConnection(port);
  const sendOnKept = () => {
    if (!connection.isOpen) connection = new PipelinedConnection(port);
    return connection.send(request);
  };
  const sendOnNew = async () => (await sendOnce(port, request)).status;

  const kept: number[] = [];
  const fresh: number[] = [];
  const pending: Promise<void>[] = [];
  const [startedAt, waitedBefore] = [performance.now(), cpuWaitMs(process.pid)];
  for (let number = 0; number < (seconds * 1_000) / INTERVAL_MS; number++) {
    await Bun.sleep(Math.max(0, startedAt + number * INTERVAL_MS - performance.now()));
    pending.push(measure(sendOnKept, kept), measure(sendOnNew, fresh));
  }
  await Promise.all(pending);
  connection.close();
  const cpuWait = (cpuWaitMs(process.pid) - waitedBefore) / (performance.now() - startedAt);
  return { keptConnection: latencyOf(kept), newConnections: latencyOf(fresh), cpuWait, failures };
}

function latencyOf(ms: readonly number[]): Latency {
  return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), worst: Math.max(...ms), requests: ms.length };
}
