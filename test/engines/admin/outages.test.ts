import { afterAll, expect, test } from "bun:test";
import { postgresUrl, startPostgres } from "../../../trials/harness/postgres.ts";
import { startAdminService, TOKEN } from "../../admin/admin-service.ts";
import { cleanUp, InProcessCli } from "../../cli/cli.ts";
import { metricsOf } from "../../observe/parse-metrics.ts";
import { until } from "../../timing.ts";

const POSTGRESQL = 'engine="PostgreSQL",role="database"';
const LIMITS = 'engine="PostgreSQL",role="rate_limiter"';

const postgres = await startPostgres();
const service = await startAdminService({}, { databaseUrl: postgres.url });
afterAll(async () => {
  await service.stop();
  await cleanUp();
  await postgres.stop();
});

const ready = (query = "") => service.admin(`/readyz${query}`, { token: null });
const becomesReady = () => until(async () => (await ready()).status === 200, 5_000);
const becomesUnready = () => until(async () => (await ready()).status === 503, 5_000);
const areUp = () =>
  [POSTGRESQL, LIMITS].map((labels) => metricsOf(service.app).value(`petstore_engine_up{${labels}}`));

test("engines have a state, durations and queues, and there is no cache of pets", async () => {
  await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 7 } });
  await service.call({ path: "/pets" });
  const queueOf = (labels: string) => metricsOf(service.app).value(`petstore_engine_queue_length{${labels}}`);
  // The server itself asks PostgreSQL for changes of keys now and then.
  await until(() => queueOf(POSTGRESQL) === 0 && queueOf(LIMITS) === 0, 5_000);
  const { value, series } = metricsOf(service.app);
  for (const labels of [POSTGRESQL, LIMITS]) {
    expect(value(`petstore_engine_request_duration_seconds_count{${labels}}`)).toBeGreaterThanOrEqual(2);
    expect(value(`petstore_engine_request_duration_seconds_sum{${labels}}`)).toBeGreaterThan(0);
  }
  expect(areUp()).toEqual([1, 1]);
  expect(value("petstore_group_commit_writes_sum")).toBe(1);
  expect(series.filter((each) => each.startsWith("petstore_cache"))).toEqual([
    'petstore_cache_requests_total{cache="keys",result="hit"}',
    'petstore_cache_requests_total{cache="keys",result="miss"}',
  ]);
});

test("a server that cannot write its token keeps one in memory, and says so", async () => {
  const databaseUrl = await postgresUrl();
  const storage = ["--database-url", databaseUrl, "--data", "/proc/petstore"];
  const cli = new InProcessCli();
  await cli.run(["migrate", "--database-url", databaseUrl]);
  // Otherwise there would be a first key to write, too.
  await cli.run(["keys", "create", "--name", "a", "--plan", "free", "--database-url", databaseUrl]);
  const { lines, adminUrl, stop } = await cli.serve(storage);
  expect(lines.join("\n")).toMatch(/"level":"warn","event":"admin\.token-not-saved"/);
  expect((await fetch(`${adminUrl}/readyz`)).status).toBe(200);
  await stop();
});

test("while PostgreSQL is unavailable: not ready, nobody signs in, and who was there before is still let in", async () => {
  const operator = { name: "prom", role: "metrics" };
  const { token } = await service.ok("POST /api/operators", { body: operator });
  const scrape = async (secret: string) => (await service.admin("/metrics", { token: secret })).status;
  expect(await scrape(String(token))).toBe(200);
  await postgres.stop();
  await becomesUnready();
  expect((await ready()).text).toContain("[-]database failed\n");
  expect((await service.admin("/livez", { token: null })).status).toBe(200);
  expect((await service.call({ path: "/pets" })).status).toBe(503);
  expect(areUp()).toEqual([0, 0]);
  const signIn = await service.signIn({ token: TOKEN });
  expect([signIn.status, signIn.headers.get("set-cookie")]).toEqual([503, null]);
  // Who has a session or the token still sees the state of the server.
  expect(await service.ok("/api/server")).toMatchObject({ database: { state: "unavailable" } });
  const keys = await service.admin("/api/keys");
  expect(keys).toMatchObject({ status: 503, json: { code: "unavailable" } });
  expect(keys.headers.get("retry-after")).toBe("1");
  const statuses = await Promise.all([String(token), TOKEN, "not-known"].map(scrape));
  expect(statuses).toEqual([200, 200, 503]);
  await postgres.restart();
  await becomesReady();
  await until(() => areUp().every((up) => up === 1), 5_000);
}, 60_000);
