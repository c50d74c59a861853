import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";

import { RawConnection } from "../../trials/harness/http-connection.ts";
import { LAST_BACKUP } from "../../src/domain/stored-values.ts";
import { createLog } from "../../src/observe/log.ts";
import { METRICS } from "../../src/observe/metrics.ts";
import type { OutcomeTotals } from "../../src/domain/live-series.ts";
import { IDLE_WEBHOOK, type Service, startService } from "../service.ts";
import { sendRaw } from "../http/raw.ts";
import { BY } from "../key-store-arguments.ts";
import { accept, startReceiver } from "../../trials/harness/webhook-receiver.ts";
import { until } from "../timing.ts";
import { metricsOf, type ParsedMetrics } from "./parse-metrics.ts";

let service: Service;
const log = createLog({ level: "warn", format: "json", write() {} });
beforeAll(async () => {
  const tracing = { url: "http://127.0.0.1:1/v1/traces", sample: 0 };
  service = await startService({ webhook: IDLE_WEBHOOK, tracing }, log);
  await service.app.storedValues.saveValues({ [LAST_BACKUP]: "1763208000000" });
  await service.restart();
  await until(() => metrics().value("petstore_webhook_waiting_entries") === 0, 5_000);
});
afterAll(() => service.stop());

const metrics = () => metricsOf(service.app);

let before: ParsedMetrics;
let outcomesBefore: OutcomeTotals;
beforeEach(() => {
  before = metrics();
  outcomesBefore = service.app.metrics.requests.totals();
});

/** What the test has added to a counter. A series that is new has no value before. */
const added = (series: string) => (metrics().value(series) ?? 0) - (before.value(series) ?? 0);
const addedToAll = (pattern: RegExp) => metrics().sum(pattern) - before.sum(pattern);
const responses = (operation: string, status: number) =>
  added(`petstore_http_requests_total{operation="${operation}",status="${status}"}`);
const decisions = (plan: string, outcome: string) =>
  added(`petstore_rate_limit_decisions_total{plan="${plan}",outcome="${outcome}"}`);
const outcomes = (...names: (keyof OutcomeTotals)[]) => {
  const totals = service.app.metrics.requests.totals();
  return names.map((name) => totals[name] - outcomesBefore[name]);
};

describe("requests", () => {
  test("are counted by operation and status, also those that are rejected", async () => {
    await service.call({ path: "/pets" });
    await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 7 } });
    await service.call({ method: "POST", path: "/pets", body: { name: 5 } });
    await service.call({ path: "/pets/1" });
    await service.call({ path: "/pets/99" });
    await service.call({ path: "/nothing" });
    await service.call({ method: "DELETE", path: "/pets" });
    expect([responses("listPets", 200), responses("createPet", 201), responses("getPet", 200)]).toEqual([
      1, 1, 1,
    ]);
    expect([responses("createPet", 400), responses("getPet", 404)]).toEqual([1, 1]);
    expect([responses("none", 404), responses("none", 405)]).toEqual([1, 1]);
    expect(addedToAll(/^petstore_http_requests_total/)).toBe(7);
    expect(added('petstore_http_request_duration_seconds_count{operation="createPet"}')).toBe(2);
  });

  test("pages and health checks have labels of their own, and a request that is not HTTP counts as none", async () => {
    const origin = new URL(service.url).origin;
    for (const path of ["/docs", "/healthz", "/healthz", "/favicon.ico"]) await fetch(origin + path);
    expect([responses("page", 200), responses("page", 404), responses("health", 200)]).toEqual([1, 1, 2]);
    expect(outcomes("success", "clientError")).toEqual([1, 1]);
    expect(await sendRaw(service.url, "GET / HTTP/1.1\r\n\r\n")).toContain("400 Bad Request");
    expect(responses("none", 400)).toBe(1);
  });

  test("a client that disconnects before its body has arrived is no server error", async () => {
    const head = [
      "POST /v1/pets HTTP/1.1",
      "Host: x",
      `Authorization: Bearer ${service.key}`,
      "Content-Type: application/json",
      "Content-Length: 100",
    ];
    const client = new RawConnection(Number(new URL(service.url).port));
    await client.write(`${head.join("\r\n")}\r\n\r\n{`);
    await until(() => added("petstore_http_received_bytes_total") !== 0, 5_000);
    client.socket.destroy();
    await until(
      () => added('petstore_http_request_duration_seconds_count{operation="createPet"}') === 1,
      5_000,
    );
    expect(addedToAll(/^petstore_http_requests_total/)).toBe(0);
    expect(decisions("enterprise", "allowed")).toBe(1);
  });
});

describe("rate limits and keys", () => {
  test("decisions are counted by plan and outcome", async () => {
    const { secret } = await service.newKey({ plan: "free", limits: undefined as never });
    for (let i = 0; i < 62; i++) await service.call({ path: "/pets?limit=1", key: secret });
    for (let i = 0; i < 11; i++) {
      service.clock.advance(1_001);
      await service.call({ path: "/pets?limit=1", key: secret });
    }
    expect(["allowed", "limited", "banned"].map((outcome) => decisions("free", outcome))).toEqual([
      60, 11, 2,
    ]);
    expect(responses("none", 429)).toBe(13);
    expect(added("petstore_bans_total")).toBe(1);
    expect(outcomes("success", "clientError", "limited", "banned")).toEqual([60, 0, 11, 2]);
  });

  test("failures of authentication are counted by reason, and their requests as anonymous", async () => {
    await service.call({ path: "/pets", key: null });
    await service.call({ path: "/pets", key: "pet_live_wrong" });
    await service.call({ path: "/pets", key: "pet_live_wrong" });
    const failures = ["missing_api_key", "invalid_api_key", "unavailable"].map((reason) =>
      added(`petstore_authentication_failures_total{reason="${reason}"}`),
    );
    expect(failures).toEqual([1, 2, 0]);
    expect(decisions("anonymous", "allowed")).toBe(3);
    expect(responses("none", 401)).toBe(3);
  });

  test("caches count hits and misses", async () => {
    const cache = (name: string, result: string) =>
      added(`petstore_cache_requests_total{cache="${name}",result="${result}"}`);
    const { secret } = await service.newKey();
    for (let i = 0; i < 4; i++) await service.call({ path: "/pets?limit=77", key: secret });
    // The server may read that the key was created after its first request, and looks it up again then.
    expect(cache("keys", "miss")).toBeWithin(1, 3);
    expect(cache("keys", "hit")).toBe(4 - cache("keys", "miss"));
    expect([cache("responses", "hit"), cache("responses", "miss")]).toEqual([2, 2]);
    expect(cache("pets", "miss")).toBeGreaterThan(0);
  });
});

test("connections and bytes are counted", async () => {
  const request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  const response = await sendRaw(service.url, request);
  expect(added("petstore_http_connections_accepted_total")).toBe(1);
  expect(added("petstore_http_connections_rejected_total")).toBe(0);
  expect(added("petstore_http_received_bytes_total")).toBe(request.length);
  expect(added("petstore_http_sent_bytes_total")).toBe(response.length);
  expect(metrics().value("petstore_http_max_connections")).toBeGreaterThan(100);
});

test("writes that share a transaction are counted", async () => {
  const create = () => service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 7 } });
  await Promise.all(Array.from({ length: 20 }, create));
  const parsed = metrics();
  expect(added("petstore_group_commit_writes_sum")).toBe(20);
  expect(added("petstore_group_commit_writes_count")).toBeWithin(1, 20);
  expect(parsed.value("petstore_group_commit_duration_seconds_sum")).toBeGreaterThan(0);
  expect(parsed.value("petstore_group_commit_queue_length")).toBe(0);
  expect(parsed.value('petstore_engine_up{engine="SQLite",role="database"}')).toBe(1);
  expect(parsed.value('petstore_engine_queue_length{engine="SQLite",role="database"}')).toBe(0);
  expect(parsed.value('petstore_engine_up{engine="memory",role="rate_limiter"}')).toBe(1);
  expect(parsed.value("petstore_disk_free_bytes")).toBeGreaterThan(0);
});

test("the process and the build are described, and series of expected statuses exist before the first of them", () => {
  const cpuSeconds = () => Object.values(process.cpuUsage()).reduce((sum, each) => sum + each) / 1_000_000;
  const cpuBefore = cpuSeconds();
  const parsed = metrics();
  expect(parsed.value("process_cpu_seconds_total")).toBeWithin(cpuBefore, cpuSeconds() + 0.001);
  expect(parsed.value("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
  expect(Math.abs((parsed.value("process_start_time_seconds") ?? 0) - Date.now() / 1000)).toBeLessThan(3_600);
  expect(parsed.value("process_open_fds")).toBeGreaterThan(3);
  expect(parsed.value("process_max_fds")).toBeGreaterThan(255);
  expect(
    parsed.sum(/^petstore_build_info\{version="\d+\.\d+\.\d+",runtime="[\d.]+",environment="production"\}$/),
  ).toBe(1);
  expect(parsed.value("petstore_draining")).toBe(0);
  expect(parsed.value('petstore_http_requests_total{operation="createPet",status="503"}')).toBe(0);
  expect(parsed.value('petstore_authentication_failures_total{reason="unavailable"}')).toBe(0);
});

test("a webhook: attempts by result, what waits, and the age of the oldest; without one there is no series", async () => {
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { url } = receiver;
  await using own = await startService({
    webhook: { url, secrets: [new Uint8Array(32)], events: ["key.updated"] },
  });
  const value = (series: string) => metricsOf(own.app).value(series);
  await until(() => value("petstore_webhook_waiting_entries") !== undefined, 5_000);
  await own.app.keys.updateKey(1, { owner: "ann" }, { ...BY, at: own.clock.now() });
  own.clock.advance(90_000);
  await until(() => (value('petstore_webhook_deliveries_total{result="failed"}') ?? 0) > 0, 5_000);
  await until(() => value("petstore_webhook_waiting_entries") === 1, 5_000);
  expect(value("petstore_webhook_oldest_waiting_seconds")).toBe(90);
  receiver.behave(accept);
  await until(() => value('petstore_webhook_deliveries_total{result="delivered"}') === 1, 5_000);
  await until(() => value("petstore_webhook_waiting_entries") === 0, 5_000);
  expect(value("petstore_webhook_oldest_waiting_seconds")).toBe(0);
  expect(value('petstore_webhook_deliveries_total{result="skipped"}')).toBe(0);
  await using without = await startService();
  expect([...metricsOf(without.app).series].filter((series) => series.includes("webhook"))).toEqual([]);
});

test("the last backup that a command has recorded has its time, and without one there is no series", async () => {
  await until(() => metrics().value("petstore_last_backup_timestamp_seconds") === 1_763_208_000, 5_000);
  await using without = await startService();
  expect(metricsOf(without.app).series).not.toContain("petstore_last_backup_timestamp_seconds");
});

test("lines of the log are counted by level, those below --log-level are not", () => {
  const lines = (level: string) => added(`petstore_log_lines_total{level="${level}"}`);
  log.event("tls.certificate-incomplete", { error: new Error("test") });
  log.event("audit.delete-failed", { error: new Error("test") });
  log.event("audit.delete-failed", { error: new Error("test") });
  log.event("key-changes.readable");
  expect([lines("info"), lines("warn"), lines("error")]).toEqual([0, 1, 2]);
  expect(metrics().value('petstore_log_lines_total{level="info"}')).toBe(0);
});

test("every metric of the table is exposed, with the labels of the table alone", () => {
  const exposed = new Map<string, Set<string>>();
  for (const series of metrics().series) {
    const [, name = "", labels = ""] = /^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})?$/.exec(series) ?? [];
    const known = exposed.get(name) ?? new Set();
    exposed.set(name, known);
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) if (label !== "le") known.add(label);
  }
  // test/system/config has a server with TLS, and test/engines some on PostgreSQL.
  const ofPostgres = new Set(["petstore_commits_wait_for_standby", "petstore_clock_ahead_seconds"]);
  const ofThisServer = Object.entries(METRICS).filter(
    ([name]) => !name.includes("_tls_") && !ofPostgres.has(name),
  );
  const table = ofThisServer.map(([name, metric]) => [name, new Set(Object.keys(metric.labels))]);
  expect([...exposed].toSorted()).toEqual(table.toSorted() as never);
});

test("keys, addresses and paths of clients add no series, and a scrape has at most 200 kB", async () => {
  await service.call({ path: "/pets" });
  await service.call({ path: "/pets", key: "pet_live_wrong" });
  await service.call({ path: "/unknown" });
  const { length } = metrics().series;
  for (let i = 0; i < 20; i++) {
    const { secret } = await service.newKey();
    await service.call({ path: `/pets?limit=${i + 1}`, key: secret });
    await service.call({ path: `/unknown/${i}`, key: secret });
    await service.call({ path: "/pets", key: `pet_live_wrong${i}` });
  }
  expect(metrics().series).toHaveLength(length);
  expect(service.app.metrics.expose().length).toBeLessThan(200_000);
});
