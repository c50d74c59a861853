import { afterAll, beforeAll, expect, test } from "bun:test";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import type { Server } from "../../../trials/harness/server.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { type Service, startService } from "../../service.ts";
import { metricsOf } from "../../observe/parse-metrics.ts";
import { until } from "../../timing.ts";

const START_TIMEOUT_MS = 60_000;
const POSTGRESQL = 'engine="PostgreSQL",role="database"';
const VALKEY = 'engine="Valkey",role="rate_limiter"';

let postgres: Server;
let valkey: Server;
let service: Service;

beforeAll(async () => {
  [postgres, valkey] = await Promise.all([startPostgres(), startValkey()]);
  service = await startService({ databaseUrl: postgres.url, limitsUrls: [valkey.url] });
}, START_TIMEOUT_MS);

afterAll(async () => {
  await service.stop();
  await Promise.all([postgres.stop(), valkey.stop()]);
});

const isUp = (labels: string) => metricsOf(service.app).value(`petstore_engine_up{${labels}}`);
const list = () => service.call({ path: "/pets" });

test("engines have a state, durations and queues, and there is no cache of pets", async () => {
  await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 7 } });
  await list();
  const queueOf = (labels: string) => metricsOf(service.app).value(`petstore_engine_queue_length{${labels}}`);
  // The server itself asks PostgreSQL for changes of keys now and then.
  await until(() => queueOf(POSTGRESQL) === 0 && queueOf(VALKEY) === 0);
  const parsed = metricsOf(service.app);
  for (const labels of [POSTGRESQL, VALKEY]) {
    expect(parsed.value(`petstore_engine_up{${labels}}`)).toBe(1);
    expect(parsed.value(`petstore_engine_request_duration_seconds_count{${labels}}`)).toBeGreaterThanOrEqual(
      2,
    );
    expect(parsed.value(`petstore_engine_request_duration_seconds_sum{${labels}}`)).toBeGreaterThan(0);
  }
  expect(parsed.value("petstore_group_commit_writes_sum")).toBe(1);
  expect(parsed.series.filter((series) => series.startsWith("petstore_cache"))).toEqual([
    'petstore_cache_requests_total{cache="keys",result="hit"}',
    'petstore_cache_requests_total{cache="keys",result="miss"}',
  ]);
});

test(
  "an engine that is stopped is down, and up when it is back",
  async () => {
    await valkey.stop();
    while (isUp(VALKEY) === 1) await list();
    expect(isUp(POSTGRESQL)).toBe(1);
    await postgres.kill();
    const unavailable = () => metricsOf(service.app).sum(/status="503"/);
    while (isUp(POSTGRESQL) === 1 || unavailable() === 0) await list();
    await Promise.all([postgres.restart(), valkey.restart()]);
    while (isUp(VALKEY) === 0 || isUp(POSTGRESQL) === 0) await Bun.sleep(20);
  },
  START_TIMEOUT_MS,
);
