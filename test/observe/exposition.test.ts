import { expect, test } from "bun:test";
import { formatFor, formatMetrics, type MetricFamily, type Sample } from "../../src/observe/exposition.ts";
import { METRICS } from "../../src/observe/metrics.ts";
import { Histogram } from "../../src/observe/histogram.ts";

function family(name: string, ...samples: readonly Sample[]): MetricFamily {
  const { type = "gauge", help = "" } = METRICS[name] ?? {};
  return { name, type, help, samples };
}

function someFamilies(): MetricFamily[] {
  const durations = new Histogram([0.5, 1]);
  for (const seconds of [0.25, 0.5, 0.75, 3]) durations.observe(seconds);
  return [
    family("petstore_bans_total", { value: 3 }),
    family("petstore_engine_up", { labels: { engine: 'a "b"\\\n', role: "database" }, value: 1 }),
    family("petstore_engine_queue_length"),
    family("petstore_group_commit_duration_seconds", { value: durations }),
    family("process_cpu_seconds_total", { value: 0.25 }),
  ];
}

test("the text format: a family has its help, its type and its series; a family without series is left out", () => {
  expect(formatMetrics(someFamilies(), "text")).toBe(
    [
      "# HELP petstore_bans_total Bans that this server decided.",
      "# TYPE petstore_bans_total counter",
      "petstore_bans_total 3",
      "# HELP petstore_engine_up 1 while the engine is available.",
      "# TYPE petstore_engine_up gauge",
      String.raw`petstore_engine_up{engine="a \"b\"\\\n",role="database"} 1`,
      "# HELP petstore_group_commit_duration_seconds Time of such a transaction, until it was on disk.",
      "# TYPE petstore_group_commit_duration_seconds histogram",
      'petstore_group_commit_duration_seconds_bucket{le="0.5"} 2',
      'petstore_group_commit_duration_seconds_bucket{le="1.0"} 3',
      'petstore_group_commit_duration_seconds_bucket{le="+Inf"} 4',
      "petstore_group_commit_duration_seconds_sum 4.5",
      "petstore_group_commit_duration_seconds_count 4",
      "# HELP process_cpu_seconds_total CPU time of the process.",
      "# TYPE process_cpu_seconds_total counter",
      "process_cpu_seconds_total 0.25",
      "",
    ].join("\n"),
  );
});

test("OpenMetrics: counters are named without _total, units are stated, the text has an end, and the series are the same", () => {
  const lines = formatMetrics(someFamilies(), "openmetrics").split("\n");
  expect(lines.filter((line) => /^# (?:TYPE|UNIT|EOF)/.test(line))).toEqual([
    "# TYPE petstore_bans counter",
    "# TYPE petstore_engine_up gauge",
    "# TYPE petstore_group_commit_duration_seconds histogram",
    "# UNIT petstore_group_commit_duration_seconds seconds",
    "# TYPE process_cpu_seconds counter",
    "# UNIT process_cpu_seconds seconds",
    "# EOF",
  ]);
  expect(lines.slice(-2)).toEqual(["# EOF", ""]);
  expect(lines).toContain("petstore_bans_total 3");
  const isSeries = (line: string) => !line.startsWith("#");
  const ofText = formatMetrics(someFamilies(), "text").split("\n");
  expect(lines.filter(isSeries)).toEqual(ofText.filter(isSeries));
});

/** What Prometheus 2 and 3 send. */
const PROMETHEUS_2 =
  "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
const PROMETHEUS_3 =
  "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

test.each<[string | null, "text" | "openmetrics"]>([
  [null, "text"],
  ["", "text"],
  ["*/*", "text"],
  ["text/plain", "text"],
  ["text/html,application/xhtml+xml,*/*;q=0.8", "text"],
  [PROMETHEUS_2, "openmetrics"],
  [PROMETHEUS_3, "openmetrics"],
  ["Application/OpenMetrics-Text", "openmetrics"],
  ["application/openmetrics-text; version=1.0.0; q=0.3, text/plain; q=0.7", "text"],
  ["application/openmetrics-text;q=0", "text"],
  ["application/openmetrics-text;version=2.0.0", "text"],
  ["application/openmetrics-text;q=x", "text"],
])("Accept: %s: %s", (accept, format) => {
  expect(formatFor(accept)).toBe(format);
});
