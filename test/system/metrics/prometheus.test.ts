import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Prometheus, promtool, startPrometheus } from "../../../harness/prometheus.ts";
import { METRICS } from "../../../src/metrics/definitions.ts";
import { type AdminService, startAdminService, TOKEN } from "../../admin/admin-service.ts";

const DEPLOY = join(import.meta.dir, "../../../deploy");
const START_TIMEOUT_MS = 120_000;
const LISTED = 'petstore_http_requests_total{operation="listPets", status="200"}';

interface Expression {
  readonly where: string;
  readonly text: string;
}

/** Every `expr` of alerts and dashboard. */
const alertRules = readFileSync(join(DEPLOY, "prometheus/alerts.yml"), "utf8");
const dashboard = JSON.parse(readFileSync(join(DEPLOY, "grafana/dashboard.json"), "utf8"));
const expressions: Expression[] = [...expressionsOfAlerts(), ...expressionsOfDashboard()];

function expressionsOfAlerts(): Expression[] {
  return alertRules
    .split("- alert: ")
    .slice(1)
    .map((rule) => ({
      where: `alert ${/^\w+/.exec(rule)}`,
      text: /expr: (?:\|\n)?([\s\S]*?)\n {8}(?:for|labels):/.exec(rule)?.[1] ?? "",
    }));
}

function expressionsOfDashboard(): Expression[] {
  const panels: { title: string; targets?: { expr: string }[] }[] = dashboard.panels;
  const [annotation] = dashboard.annotations.list;
  return [
    { where: "dashboard: annotation", text: annotation.expr },
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ where: `dashboard: ${title}`, text: expr })),
    ),
  ];
}

/** What Grafana puts in for its variables. */
const withoutVariables = (text: string) =>
  text.replaceAll("$instance", ".*").replaceAll("$__rate_interval", "1m");

const metricNamesIn = (text: string) => new Set(text.match(/\b(?:(?:petstore|process)_\w+|up)\b/g) ?? []);

let service: AdminService;
let prometheus: Prometheus;
/** When the first scrape was over. On a busy machine a later one can take too long, and its series are gone then. */
let scrapedAt: number;

beforeAll(async () => {
  service = await startAdminService();
  for (let i = 0; i < 3; i++) await service.call({ path: "/pets" });
  await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 7 } });
  prometheus = await startPrometheus({ target: new URL(service.adminUrl).host, token: TOKEN });
  scrapedAt = Date.now() / 1000;
  while ((await prometheus.query(LISTED, scrapedAt)).length === 0) {
    await Bun.sleep(100);
    scrapedAt = Date.now() / 1000;
  }
}, START_TIMEOUT_MS);

afterAll(async () => {
  await prometheus.stop();
  await service.stop();
});

describe("promtool", () => {
  test("check metrics: the exposition has no error and no unconventional name", async () => {
    const { code, output } = await promtool(["check", "metrics"], service.app.metrics.expose(null).body);
    expect({ code, output }).toEqual({ code: 0, output: "" });
  });

  test("check metrics finds a name without its unit", async () => {
    const text =
      "# HELP petstore_delay_milliseconds A.\n# TYPE petstore_delay_milliseconds gauge\npetstore_delay_milliseconds 1\n";
    expect((await promtool(["check", "metrics"], text)).code).not.toBe(0);
  });

  test("check config, and with it check rules", async () => {
    const { code, output } = await promtool([
      "check",
      "config",
      "--syntax-only",
      join(DEPLOY, "prometheus/prometheus.yml"),
    ]);
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining("SUCCESS") });
    const rules = await promtool(["check", "rules", join(DEPLOY, "prometheus/alerts.yml")]);
    expect(rules.code).toBe(0);
    expect(rules.output).toContain(`${alertRules.match(/- alert:/g)?.length} rules found`);
  });

  test("test rules: each alert fires when it should", async () => {
    const { code, output } = await promtool(["test", "rules", join(DEPLOY, "prometheus/alerts_test.yml")]);
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining("SUCCESS") });
  });

  test("each alert is in the tests of the rules", () => {
    const tests = readFileSync(join(DEPLOY, "prometheus/alerts_test.yml"), "utf8");
    const names = [...alertRules.matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !tests.includes(name))).toEqual([]);
  });
});

describe("a Prometheus with the configuration in deploy/", () => {
  test("scrapes the metrics", async () => {
    expect((await prometheus.query(LISTED, scrapedAt)).map(({ value }) => value)).toEqual([3]);
    const [build] = await prometheus.query("petstore_build_info", scrapedAt);
    expect(build?.labels).toMatchObject({ job: "petstore", environment: "production" });
  });

  test.each(Object.entries(METRICS))("has %s", async (name, { type }) => {
    const series = await prometheus.query(type === "histogram" ? `${name}_count` : name, scrapedAt);
    expect(series).not.toEqual([]);
  });

  test.each(expressions)("$where: the query is valid, and its metrics exist", async ({ text }) => {
    const query = withoutVariables(text);
    await prometheus.query(query, scrapedAt);
    const names = metricNamesIn(query);
    expect([...names]).not.toEqual([]);
    for (const name of names) expect([name, await prometheus.query(name, scrapedAt)]).not.toEqual([name, []]);
  });

  test("raises no alert", async () => {
    expect(await prometheus.query('ALERTS{alertstate="firing"}')).toEqual([]);
  });
});

test("the dashboard has a title, a description and a unit on every panel", () => {
  const panels: Record<string, unknown>[] = dashboard.panels;
  const plots = panels.filter(({ type }) => type !== "row");
  expect(plots.length).toBeGreaterThan(20);
  for (const panel of plots) {
    expect(panel).toMatchObject({
      title: expect.stringMatching(/./),
      description: expect.stringMatching(/./),
      fieldConfig: { defaults: { unit: expect.stringMatching(/./) } },
    });
  }
});
