import { afterAll, expect, test } from "bun:test";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../../../trials/harness/child.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { onFreePort, startServer } from "../../../trials/harness/server.ts";
import { executable, PROMETHEUS, PROMTOOL } from "../../../trials/harness/programs.ts";

import { METRICS } from "../../../src/observe/metrics.ts";
import { startAdminService } from "../../admin/admin-service.ts";
import { IDLE_WEBHOOK } from "../../service.ts";
import { until } from "../../timing.ts";

const DEPLOY = join(import.meta.dir, "../../../deploy");
const CONFIG = join(DEPLOY, "prometheus/prometheus.yml");
const RULES = join(DEPLOY, "prometheus/alerts.yml");
const RULE_TESTS = ["alerts_test.yml", "alerts_days_test.yml"].map((name) =>
  join(DEPLOY, "prometheus", name),
);
const LISTED = 'petstore_http_requests_total{operation="listPets", status="200"}';

interface Dashboard {
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
}

const alerts = readFileSync(RULES, "utf8").split("- alert: ").slice(1);
const dashboard: Dashboard = JSON.parse(readFileSync(join(DEPLOY, "grafana/dashboard.json"), "utf8"));

/** The expressions of all alerts and of the dashboard, with what Grafana puts in for its variables. */
const expressions = [
  ...alerts.map((rule) => /expr: (?:\|\n)?([\s\S]*?)\n {8}(?:for|labels):/.exec(rule)?.[1] ?? ""),
  ...dashboard.annotations.list.map(({ expr }) => expr),
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
].map((text) => text.replaceAll("$instance", ".*").replaceAll("$__rate_interval", "1m"));

interface Series {
  readonly metric: Record<string, string>;
  readonly value: readonly [time: number, value: string];
}

const directory = temporaryDirectory("prometheus");
/** The token of an operator who may only read /metrics. */
const metricsTokenFile = join(directory, "token");
writeFileSync(metricsTokenFile, "a-token-for-prometheus-alone", { mode: 0o600 });

/** Starts it with the configuration and the alerts in deploy/, but another target and token and a shorter interval. */
async function startPrometheus(target: string) {
  copyFileSync(RULES, join(directory, "alerts.yml"));
  const config = readFileSync(CONFIG, "utf8")
    .replace("127.0.0.1:8090", target)
    .replace("/etc/prometheus/petstore-metrics-token", metricsTokenFile)
    .replaceAll("15s", "1s");
  writeFileSync(join(directory, "prometheus.yml"), config);
  const { url, stop } = await onFreePort((port) =>
    startServer({
      url: `http://127.0.0.1:${port}`,
      command: [
        executable(PROMETHEUS),
        `--config.file=${join(directory, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(directory, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      cwd: directory,
      ready: /Server is ready to receive web requests/,
      stop: "SIGTERM",
    }),
  );
  /** The series that a query has now, or had at a Unix time. */
  const query = async (expression: string, at = Date.now() / 1000) => {
    const parameters = new URLSearchParams({ query: expression, time: String(at) });
    const response = await fetch(`${url}/api/v1/query?${parameters}`);
    const { status, error, data } = Object(await response.json());
    if (status !== "success") throw new Error(`the query failed: ${error}`);
    const result: readonly Series[] = data.result;
    return result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
  };
  return { query, stop };
}

/** Runs promtool. Gives its exit code and all that it wrote. */
async function promtool(args: readonly string[], input = "") {
  const { code, out, err } = await runProgram([executable(PROMTOOL), ...args], { input });
  return { code, output: out + err };
}

const ruleTests = promtool(["test", "rules", ...RULE_TESTS]);

const service = await startAdminService({ metricsTokenFile }, { webhook: IDLE_WEBHOOK });
for (let i = 0; i < 3; i++) await service.call({ path: "/pets" });
await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 7 } });
const prometheus = await startPrometheus(new URL(service.adminUrl).host);
/** When the first scrape was over. On a busy machine a later one can take too long, and its series are gone then. */
let scrapedAt = Date.now() / 1000;
const isListed = async () => {
  scrapedAt = Date.now() / 1000;
  return (await prometheus.query(LISTED, scrapedAt)).length > 0;
};
await until(isListed, 10_000);

afterAll(async () => {
  await prometheus.stop();
  await service.stop();
});

test("promtool finds no error and no unconventional name in the metrics", async () => {
  const { code, output } = await promtool(["check", "metrics"], service.app.metrics.expose());
  expect({ code, output }).toEqual({ code: 0, output: "" });
});

test("promtool finds no error in the configuration and the rules", async () => {
  const [checked, rules] = await Promise.all([
    promtool(["check", "config", "--syntax-only", CONFIG]),
    promtool(["check", "rules", RULES]),
  ]);
  expect(checked).toMatchObject({ code: 0, output: expect.stringContaining("SUCCESS") });
  expect(rules).toMatchObject({ code: 0, output: expect.stringContaining(`${alerts.length} rules found`) });
});

test("each alert has a test, and fires when it should", async () => {
  const tests = RULE_TESTS.map((path) => readFileSync(path, "utf8")).join("");
  const names = alerts.map((rule) => /^\w+/.exec(rule)?.[0] ?? "");
  expect(names.filter((name) => !tests.includes(name))).toEqual([]);
  expect(await ruleTests).toMatchObject({ code: 0, output: expect.stringContaining("SUCCESS") });
});

test("a Prometheus with the configuration in deploy/ scrapes the metrics, and raises no alert", async () => {
  expect((await prometheus.query(LISTED, scrapedAt)).map(({ value }) => value)).toEqual([3]);
  const [build] = await prometheus.query("petstore_build_info", scrapedAt);
  expect(build?.labels).toMatchObject({ job: "petstore", environment: "production" });
  expect(await prometheus.query('ALERTS{alertstate="firing"}')).toEqual([]);
});

test("every metric is scraped, and the queries of alerts and dashboard are valid and use no others", async () => {
  const series = await prometheus.query('{__name__=~"petstore_.+|process_.+|up"}', scrapedAt);
  const scraped = new Set(series.map(({ labels }) => labels["__name__"] ?? ""));
  const defined = Object.entries(METRICS).map(([name, { type }]) =>
    type === "histogram" ? `${name}_count` : name,
  );
  // These need PostgreSQL, a collector of spans, a backup and TLS, which this server does not have.
  const missing = [
    "petstore_commits_wait_for_standby",
    "petstore_traced_requests_total",
    "petstore_last_backup_timestamp_seconds",
    "petstore_tls_certificate_expiry_timestamp_seconds",
    "petstore_clock_ahead_seconds",
  ];
  expect(defined.filter((name) => !scraped.has(name))).toEqual(missing);
  expect(expressions.length).toBeGreaterThan(alerts.length);
  for (const expression of expressions) {
    await prometheus.query(expression, scrapedAt);
    const names = expression.match(/\b(?:(?:petstore|process)_\w+|up)\b/g) ?? [];
    expect(names).not.toEqual([]);
    expect(names.filter((name) => !scraped.has(name) && !missing.includes(name))).toEqual([]);
  }
});
