/**
 * CPU time that metrics take for one request and for one scrape: `npx bun bench/metrics.ts`.
 * `npx bun bench/peers/prom-client.ts` counts the same with prom-client, after `npm ci --prefix bench`.
 */
import { quantile } from "../harness/statistics.ts";
import { CacheStatistics } from "../src/bounded-cache.ts";
import { PETSTORE_API, RESPONSE_STATUSES } from "../src/petstore/operations.ts";
import type { OperationId } from "../src/domain/usage-history.ts";
import { RequestRecord } from "../src/observe/request-record.ts";
import type { Request, Response } from "../src/http1/index.ts";
import { CommitMonitor, AdapterMonitor, EventLoopDelay } from "../src/observe/monitors.ts";
import { formatMetrics } from "../src/observe/exposition.ts";
import { RequestMetrics } from "../src/observe/request-metrics.ts";
import { collectSamples } from "../src/observe/metrics.ts";

const REQUESTS = 200_000;
const ROUNDS = 15;
const SCRAPES = 200;

export interface ObservedRequest {
  readonly operation: OperationId;
  readonly plan: "free" | "pro";
  readonly response: Response;
}

/** What the benchmark's mix sends. */
export const OBSERVED_REQUESTS: readonly ObservedRequest[] = [
  observed("listPets", 200),
  observed("getPet", 200),
  observed("createPet", 201),
  observed("listPets", 304),
  observed("placeOrder", 409),
];

function observed(operation: OperationId, status: Response["status"]): ObservedRequest {
  const plan = status === 200 ? "pro" : "free";
  return { operation, plan, response: { status, headerLines: "", body: null } };
}

export interface Instrumented {
  /** `startedAt` is a time of `performance.now`. */
  observe(request: ObservedRequest, startedAt: number): void;
  expose(): string | Promise<string>;
}

/** Prints the medians. */
export async function measureMetrics(name: string, { observe, expose }: Instrumented): Promise<void> {
  const nanoseconds = nanosecondsOf(observe) - nanosecondsOf(() => {});
  const times: number[] = [];
  let bytes = 0;
  for (let i = 0; i < SCRAPES; i++) {
    const startedAt = performance.now();
    bytes = (await expose()).length;
    times.push(performance.now() - startedAt);
  }
  const milliseconds = quantile(times, 0.5).toFixed(2);
  console.log(
    `${name}: ${nanoseconds.toFixed(0)} ns a request, ${milliseconds} ms a scrape of ${bytes} bytes`,
  );
}

function nanosecondsOf(observe: Instrumented["observe"]): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    for (let i = 0; i < REQUESTS; i++) {
      const request = OBSERVED_REQUESTS[i % OBSERVED_REQUESTS.length];
      if (request) observe(request, performance.now());
    }
    const { user, system } = process.cpuUsage(before);
    return ((user + system) * 1_000) / REQUESTS;
  });
  return quantile(rounds, 0.5);
}

if (import.meta.main) {
  const request: Request = {
    method: "GET",
    path: "/v1/pets",
    query: "",
    headers: { get: () => null } as unknown as Request["headers"],
    remoteAddress: "127.0.0.1",
    body: () => undefined,
  };
  const decision = { outcome: "allowed", limit: 60, remaining: 59, resetAt: 0, retryAfter: 0 } as const;
  const requests = new RequestMetrics((path) => PETSTORE_API.has(path));
  const statistics = { connections: 1, accepted: 1, rejected: 0, evicted: 0, queueLength: 0 };
  const sources = {
    version: "1.0.0",
    environment: "production",
    requests,
    statuses: RESPONSE_STATUSES,
    eventLoopDelay: new EventLoopDelay(),
    server: {
      statistics: { ...statistics, bytesReceived: 1, bytesSent: 1 },
      maxConnections: 20_000,
      isShuttingDown: false,
    },
    authenticator: { cacheStatistics: new CacheStatistics(), lookupQueueLength: 0 },
    adapters: {
      database: new AdapterMonitor("SQLite"),
      limits: new AdapterMonitor("memory"),
      commits: new CommitMonitor(),
      petJson: { cacheStatistics: new CacheStatistics() },
    },
    responseCache: new CacheStatistics(),
  };
  const limits = { perMinute: 60, perDay: 1_000 };
  const subject = { kind: "key", id: 1 } as const;
  const principals = {
    free: { keyId: 1, subject, plan: "free", access: "write", limits },
    pro: { keyId: 1, subject, plan: "pro", access: "write", limits },
  } as const;
  await measureMetrics("Petstore", {
    observe({ operation, plan, response }, startedAt) {
      // The server makes a record of each request for all observers.
      const record = new RequestRecord(request, "id", startedAt);
      record.decision = decision;
      record.operation = operation;
      record.principal = principals[plan];
      requests.observe(record, response);
    },
    expose: () => formatMetrics(collectSamples(sources), "text"),
  });
}
