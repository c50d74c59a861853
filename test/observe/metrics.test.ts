import { expect, jest, onTestFinished, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { HeaderFields } from "../../src/http1/header-fields.ts";
import type { Request, Response } from "../../src/http1/index.ts";
import { NO_ACTIVITY } from "../../src/domain/servers.ts";
import { CommitMonitor, EngineMonitor } from "../../src/observe/engine-monitor.ts";
import { AppMetrics } from "../../src/observe/metrics.ts";
import { RequestMetrics } from "../../src/observe/request-metrics.ts";
import { RequestRecord } from "../../src/observe/request-record.ts";
import { activityOf } from "../../src/observe/server-activity.ts";
import { advance } from "../fake-timers.ts";
import { TestClock } from "../test-clock.ts";
import { parseMetrics } from "./parse-metrics.ts";

/** The metrics of a server on PostgreSQL. */
function setUp() {
  const clock = new TestClock();
  const requests = new RequestMetrics({
    operations: new Map([["getPet", [200, 404]]]),
    isApiPath: (path) => path.startsWith("/v1/"),
  });
  const database = new EngineMonitor("PostgreSQL");
  const commits = new CommitMonitor(database);
  const statistics = {
    connections: 1,
    accepted: 2,
    rejected: 3,
    evicted: 4,
    bytesReceived: 5,
    bytesSent: 6,
    queueLength: 7,
  };
  const server = { statistics, maxConnections: 8, isShuttingDown: true, tlsCertificate: undefined };
  const webhook = {
    counts: { delivered: 9 },
    waiting: { count: 10, oldestAt: (clock.now() - 11_000) as number | undefined },
  };
  const metrics = new AppMetrics({
    clock,
    version: "1.0.0",
    environment: "staging",
    server,
    requests,
    responseCacheStatistics: { hits: 1, misses: 2 },
    webhook: webhook as never,
    log: { lines: { info: 12, warn: 13, error: 14 } },
    lastBackup: { at: 15_000 },
    authenticator: { cacheStatistics: { hits: 16, misses: 17 }, lookupQueueLength: 18 },
    adapters: {
      database,
      limiterMonitor: new EngineMonitor("PostgreSQL", database),
      commits,
      bans: { count: 19 },
      commitQueueLength: () => 20,
      queueLength: () => 21,
      rateLimiter: { queueLength: 22 },
      petJson: {},
      clockWatch: { aheadMs: -3_600_000 },
    },
    servers: { list: () => [] },
  });
  onTestFinished(() => metrics.close());
  const observe = (path: string, status: number, more: Partial<RequestRecord> = {}) => {
    const request = { method: "GET", path, headers: HeaderFields.parse("") } as Request;
    const record = Object.assign(new RequestRecord(request, "id"), { durationMs: 2 }, more);
    requests.observe(record, { status: status as Response["status"], headerLines: "", body: null });
  };
  return { clock, metrics, requests, server, commits, webhook, observe };
}

const seriesOf = (metrics: AppMetrics) => {
  const { series, value } = parseMetrics(metrics.expose());
  return series.map((name) => `${name} ${value(name)}`);
};

test("each series has the value of its source", () => {
  const { metrics, clock, webhook, commits } = setUp();
  const shown = () =>
    seriesOf(metrics).filter(
      (line) => !/_bucket|_sum|_count|_max_|^process|[,"{](?:operation|plan|reason)=/.test(line),
    );
  expect(shown()).toEqual([
    `petstore_build_info{version="1.0.0",runtime="${Bun.version}",environment="staging"} 1`,
    "petstore_servers_differing_settings 0",
    "petstore_draining 1",
    "petstore_http_connections 1",
    "petstore_http_connections_accepted_total 2",
    "petstore_http_connections_rejected_total 3",
    "petstore_http_connections_evicted_total 4",
    "petstore_http_received_bytes_total 5",
    "petstore_http_sent_bytes_total 6",
    "petstore_http_queue_length 7",
    "petstore_bans_total 19",
    "petstore_key_lookup_queue_length 18",
    'petstore_cache_requests_total{cache="keys",result="hit"} 16',
    'petstore_cache_requests_total{cache="keys",result="miss"} 17',
    'petstore_engine_up{engine="PostgreSQL",role="database"} 1',
    'petstore_engine_up{engine="PostgreSQL",role="rate_limiter"} 1',
    "petstore_commits_wait_for_standby 0",
    'petstore_engine_queue_length{engine="PostgreSQL",role="database"} 21',
    'petstore_engine_queue_length{engine="PostgreSQL",role="rate_limiter"} 22',
    "petstore_group_commit_queue_length 20",
    'petstore_webhook_deliveries_total{result="delivered"} 9',
    "petstore_webhook_waiting_entries 10",
    "petstore_webhook_oldest_waiting_seconds 11",
    "petstore_last_backup_timestamp_seconds 15",
    "petstore_clock_ahead_seconds -3600",
    'petstore_log_lines_total{level="info"} 12',
    'petstore_log_lines_total{level="warn"} 13',
    'petstore_log_lines_total{level="error"} 14',
  ]);
  // The clock of the server that wrote the entry may be ahead.
  clock.step(-60_000);
  expect(shown()).toContain("petstore_webhook_oldest_waiting_seconds 0");
  webhook.waiting.oldestAt = undefined;
  expect(shown()).toContain("petstore_webhook_oldest_waiting_seconds 0");
  commits.committed(3, 250);
  expect(seriesOf(metrics)).toEqual(
    expect.arrayContaining([
      "petstore_group_commit_writes_sum 3",
      "petstore_group_commit_duration_seconds_sum 0.25",
      'petstore_engine_request_duration_seconds_sum{engine="PostgreSQL",role="database"} 0.25',
    ]),
  );
});

test("the expected statuses and outcomes have a series from the start", () => {
  const { requests, metrics } = setUp();
  const decisions = seriesOf(metrics).filter((line) =>
    line.startsWith("petstore_rate_limit_decisions_total"),
  );
  // An address is never banned.
  expect([decisions.length, ...decisions.slice(-2)]).toEqual([
    14,
    'petstore_rate_limit_decisions_total{plan="anonymous",outcome="allowed"} 0',
    'petstore_rate_limit_decisions_total{plan="anonymous",outcome="limited"} 0',
  ]);
  const statuses = requests.byOperation().map(([name, { responses }]) => [name, [...responses.keys()]]);
  expect(statuses).toEqual([
    ["getPet", [200, 404]],
    ["none", [400, 401, 404, 405, 408, 429, 500, 503]],
    ["page", [200, 304, 404, 429]],
    ["health", [200, 503]],
  ]);
});

test("histograms have the same bounds in every release, in seconds and in writes", () => {
  const bounds: Record<string, number[]> = {};
  for (const line of seriesOf(setUp().metrics)) {
    const [, name, bound] = /^petstore_(\w+)_bucket\{.*le="([^"]+)"/.exec(line) ?? [];
    if (name !== undefined && bound !== "+Inf") (bounds[name] ??= []).push(Number(bound));
  }
  const durations = [
    1e-4, 25e-5, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  ];
  const ofAll = (count: number) => Array.from({ length: count }, () => durations).flat();
  expect(bounds).toEqual({
    http_request_duration_seconds: ofAll(4),
    engine_request_duration_seconds: ofAll(2),
    group_commit_writes: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
    group_commit_duration_seconds: durations,
    event_loop_delay_seconds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  });
});

test("each request has one outcome, which the server reports, and health checks have none", () => {
  const { metrics, requests, server, observe } = setUp();
  const decision = { outcome: "allowed" } as RequestRecord["decision"];
  const key = { keyId: 1, plan: "pro" } as RequestRecord["authentication"];
  const getPet = { operation: "getPet", authentication: key, decision };
  for (const status of [399, 400, 499, 500]) observe("/v1/pets/1", status, getPet);
  const rejected = (outcome: "limited" | "banned") => ({
    ...getPet,
    decision: { outcome } as typeof decision,
  });
  observe("/v1/pets/1", 429, { ...rejected("limited"), operation: undefined });
  for (let i = 0; i < 2; i++) observe("/v1/pets/1", 429, { ...rejected("banned"), operation: undefined });
  observe("/v1/pets/1", 503, { authentication: new Unavailable("down"), decision });
  observe("/v1/pets/1", 401, { authentication: "missing_api_key", decision });
  observe("/v1/nothing", 404);
  observe("/docs", 200);
  for (const status of [200, 503]) observe("/healthz", status);
  expect(requests.totals()).toEqual({ success: 2, clientError: 3, limited: 1, banned: 2, serverError: 2 });
  expect(requests.decisions.pro).toEqual({ allowed: 4, limited: 1, banned: 2 });
  expect(requests.decisions.anonymous).toEqual({ allowed: 2, limited: 0, banned: 0 });
  expect(requests.failures).toMatchObject({ unavailable: 1, missing_api_key: 1, invalid_api_key: 0 });
  const durations = requests.byOperation().map(
    ([
      name,
      {
        durations: { sum },
      },
    ]) => [name, sum],
  );
  expect(Object.fromEntries(durations)).toEqual({ getPet: 0.008, none: 0.012, page: 0.002, health: 0.004 });
  expect(seriesOf(metrics).filter((line) => line.includes('{operation="getPet",status='))).toEqual(
    ["200 0", "399 1", "400 1", "404 0", "500 1"].map((each) =>
      each.replace(/\d+/, 'petstore_http_requests_total{operation="getPet",status="$&"}'),
    ),
  );
  const { requestsPerSecond: _, ...activity } = activityOf({ ...server, port: 7 }, metrics);
  expect({ ...NO_ACTIVITY, ...activity }).toEqual({
    ...NO_ACTIVITY,
    port: 7,
    clockAheadMs: -3_600_000,
    connections: 1,
    requests: 10,
    rejections: 3,
    serverErrors: 2,
  });
});

test("a scrape may be a second old", () => {
  const { metrics, clock } = setUp();
  const first = metrics.scrape();
  clock.advance(999);
  expect(metrics.scrape()).toBe(first);
  clock.advance(1);
  expect(metrics.scrape()).not.toBe(first);
});

test("the delay of the event loop and the live series are recorded until the metrics are closed", async () => {
  jest.useFakeTimers();
  const { metrics, clock } = setUp();
  const pass = async () => {
    clock.advance(5_000);
    await advance(5_000);
    const delays = metrics.eventLoopDelay.seconds.counts.reduce((total, count) => total + count);
    return [delays, metrics.live.read("15m").connections.filter((value) => value !== null).length];
  };
  expect([await pass(), await pass()]).toEqual([
    [250, 1],
    [500, 2],
  ]);
  metrics.close();
  expect(await pass()).toEqual([500, 2]);
  jest.useRealTimers();
});

test("an engine is available while that on which it is based is", () => {
  const database = new EngineMonitor("PostgreSQL");
  const limiter = new EngineMonitor("PostgreSQL", database);
  expect([limiter.isAvailable, limiter.latencyMs]).toEqual([true, undefined]);
  database.isAvailable = false;
  expect(limiter.isAvailable).toBe(false);
  limiter.responded(5);
  expect([limiter.latencyMs, limiter.durations.sum]).toEqual([5, 0.005]);
});
