import { expect, test } from "bun:test";
import { formatMetrics, type MetricFamily, type Sample } from "../../src/observe/exposition.ts";
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

test("a family has its help, its type and its series; a family without series is left out", () => {
  expect(formatMetrics(someFamilies())).toBe(
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
