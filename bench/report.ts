import { judge, type Outcome } from "./bars.ts";
import { contestant } from "./contestants.ts";
import { count, digits, withSpread } from "./format.ts";
import { type Results, samplesOf, throughputOf } from "./results.ts";
import { median, ratioOf, spreadOf } from "./statistics.ts";
import type { Table } from "./table.ts";
import { workOf, type WorkId } from "./work.ts";

/** Above this share of its core the load generator, not the server, sets the pace. */
const LOAD_BOUND = 0.97;

export function tablesOf(results: Results): Table[] {
  const works = [...new Set(results.cells.map(({ work }) => work))];
  return [
    barsTable(judge(results)),
    ...works.map((work) => workTable(results, work)),
    ...pacedTables(results),
    ...serversTable(results),
    ...growthTable(results),
    ...limiterTable(results),
  ];
}

function barsTable(outcomes: readonly Outcome[]): Table {
  return {
    title: "The bars",
    header: ["what", "bar", "measured", ""],
    rows: outcomes.map(({ bar, measured, reached }) => {
      const unit = bar.unit === "×" ? "" : ` ${bar.unit}`;
      const limit = bar.atLeast === undefined ? `≤ ${bar.atMost}${unit}` : `≥ ${digits(bar.atLeast)}${unit}`;
      const verdict = reached === undefined ? "not measured" : reached ? "reached" : "MISSED";
      return [bar.what, limit, measured ? withSpread(measured, digits) + unit : "–", verdict];
    }),
  };
}

function workTable(results: Results, work: WorkId): Table {
  const { cells } = results;
  const bare = throughputOf(cells, work, "bare");
  const bareCpu = samplesOf(cells, work, "bare")?.map(({ cpuMicros }) => cpuMicros);
  const rows = cells
    .filter((cell) => cell.work === work)
    .map(({ server, samples }) => {
      const perSecond = samples.map((sample) => sample.perSecond);
      const cpu = samples.map(({ cpuMicros }) => cpuMicros);
      const bound = median(samples.map(({ loadCpu }) => loadCpu)) > LOAD_BOUND ? "≥ " : "";
      return [
        contestant(server).title,
        bare ? bound + withSpread(ratioOf(perSecond, bare), digits) : "–",
        bound + withSpread(spreadOf(perSecond), count),
        digits(median(samples.map(({ p50Ms }) => p50Ms))),
        digits(median(samples.map(({ p99Ms }) => p99Ms))),
        digits(median(cpu)),
        bareCpu ? digits(ratioOf(cpu, bareCpu).median) : "–",
      ];
    });
  const absent = results.omitted.map(({ id, reason }) => [contestant(id).title, reason, "", "", "", "", ""]);
  return {
    title: `${workOf(work).title} (${workOf(work).connections} ${workOf(work).connections === 1 ? "connection" : "connections"})`,
    header: ["server", "× bare route", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "CPU × bare"],
    rows: [...rows, ...absent],
  };
}

function pacedTables({ paced }: Results): Table[] {
  if (paced.length === 0) return [];
  return [
    {
      title: "Latency at half of Petstore's saturating load",
      header: ["work and server", "asked/s", "answered/s", "p50 ms", "p99 ms", "p99 × bare route"],
      rows: paced.map(({ work, server, samples, targetPerSecond }) => {
        const p99 = samples.map(({ p99Ms }) => p99Ms);
        const bare = samplesOf(paced, work, "bare")?.map(({ p99Ms }) => p99Ms);
        return [
          `${workOf(work).title}: ${contestant(server).title}`,
          count(targetPerSecond),
          count(median(samples.map(({ perSecond }) => perSecond))),
          digits(median(samples.map(({ p50Ms }) => p50Ms))),
          withSpread(spreadOf(p99), digits),
          bare ? withSpread(ratioOf(p99, bare), digits) : "–",
        ];
      }),
    },
  ];
}

function serversTable({ servers }: Results): Table[] {
  if (servers.length === 0) return [];
  return [
    {
      title: "Start to first answer, and resident memory after all of the work",
      header: ["server", "start ms", "memory MB"],
      rows: servers.map(({ id, startMs, residentMb }) => [
        contestant(id).title,
        withSpread(spreadOf(startMs), digits),
        residentMb === undefined ? "–" : digits(residentMb),
      ]),
    },
  ];
}

function growthTable({ growth }: Results): Table[] {
  if (growth.length === 0) return [];
  const works = growth[0]?.cells.map(({ work }) => work) ?? [];
  return [
    {
      title: "Growth: Petstore alone, requests/s by the size of the table",
      header: ["animals", ...works.map((work) => workOf(work).title), "start ms", "memory MB"],
      rows: growth.map((step) => [
        count(step.animals),
        ...works.map((work) => withSpread(spreadOf(throughputOf(step.cells, work, "ours") ?? []), count)),
        withSpread(spreadOf(step.startMs), digits),
        digits(step.residentMb),
      ]),
    },
  ];
}

function limiterTable({ limiter }: Results): Table[] {
  if (limiter === undefined) return [];
  return [
    {
      title: "The limiter by itself",
      header: ["measurement", "figures"],
      rows: Object.entries(limiter).map(([name, figures]) => [
        name,
        Object.entries(figures)
          .map(([figure, value]) => `${figure} ${value}`)
          .join(", "),
      ]),
    },
  ];
}
