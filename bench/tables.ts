import { machineText } from "../trials/harness/machine.ts";
import { median, ratioOf, spreadOf } from "../trials/harness/statistics.ts";
import { formatCount, formatFigure, formatSpread, type Table } from "../trials/harness/table.ts";
import { SHARED, sharedWorkload } from "./plan.ts";
import { type Cell, figuresOf, judge, type Results, type Sample, sharedRatios } from "./targets.ts";
import { CANDIDATES, PEERS, type WorkloadId, workloadOf } from "./workloads.ts";

/** Above this share of its core the load generator limits the throughput, not the server. */
const LOAD_LIMIT = 0.97;

export function conditionsOf(results: Results): string[] {
  const { takenAt, machine, versions, seconds, rounds, otherRounds, pinned, pets } = results;
  const cores = pinned
    ? "server and load on a core each"
    : "server and load on the same cores (fewer than two cores, or no taskset)";
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `Measured ${takenAt} on ${machineText(machine)}, load average before ${machine.load}.`,
    `${rounds} rounds${otherRounds === rounds ? "" : ` of list, get, create and the mix, up to ${otherRounds} of everything else,`} of ${seconds} s after a warm-up, new processes in each round, ${cores}; ${formatCount(pets)} pets unless stated.`,
    `Figures are medians, with the lowest and highest round in brackets; ratios are formed round by round. "≥" marks figures that the load generator limited.`,
    packages.join(", "),
  ];
}

/** Petstore's throughput with each workload, and that of its peers, as a share of the bare route's. */
export function summaryTable({ cells, takenAt, machine, rounds, seconds, pets }: Results): Table {
  const ours = cells.filter(({ server }) => server === "ours");
  const shareOf = (workload: WorkloadId, server: Cell["server"]) => {
    const [figures, bare] = [figuresOf(cells, workload, server), figuresOf(cells, workload, "bare")];
    return figures && bare ? formatFigure(ratioOf(figures, bare).median) : "–";
  };
  const servers = ["ours", ...PEERS] as const;
  return {
    title: "Throughput",
    note: `Medians of ${rounds} rounds of ${seconds} s with ${formatCount(pets)} pets, on ${machineText(machine)}, ${takenAt.slice(0, 10)}. The columns with the names of servers are their throughput as a share of the bare route's.`,
    header: [
      "workload",
      "requests/s",
      "p99 ms",
      "Petstore",
      ...PEERS.map((id) => CANDIDATES[id].title.replace(/ .*/, "")),
    ],
    rows: ours.map(({ workload, samples }) => {
      const shares = servers.map((id) => shareOf(workload, id));
      const [rate, p99] = [medianOf(samples, "perSecond"), medianOf(samples, "p99Ms")];
      return [workloadOf(workload).title, formatCount(rate), formatFigure(p99)].concat(shares);
    }),
  };
}

export function targetsTable(results: Results): Table {
  return {
    title: "Targets",
    header: ["ratio or figure", "target", "measured", "result"],
    rows: judge(results).map(({ target: { what, atLeast, atMost, unit }, measured, reached }) => [
      what,
      (atLeast === undefined ? `≤ ${atMost}` : `≥ ${formatFigure(atLeast)}`) + unit,
      measured ? formatSpread(measured) + unit : "–",
      reached === undefined ? "not measured" : reached ? "reached" : "MISSED",
    ]),
  };
}

export function detailTables(results: Results): Table[] {
  const workloads = [...new Set(results.cells.map(({ workload }) => workload))];
  const tables = workloads.map((workload) => workloadTable(results, workload));
  const others = [pacedTable, serversTable, growthTable, sharedTable, limiterTable].map((make) =>
    make(results),
  );
  return [...tables, ...others].filter(({ rows }) => rows.length > 0);
}

const valuesOf = (samples: readonly Sample[], figure: keyof Sample) => samples.map((each) => each[figure]);
const medianOf = (samples: readonly Sample[], figure: keyof Sample) => median(valuesOf(samples, figure));

function workloadTable({ cells }: Results, workload: WorkloadId): Table {
  const { title, connections } = workloadOf(workload);
  const bare = figuresOf(cells, workload, "bare");
  const bareCpu = figuresOf(cells, workload, "bare", "cpuMicros");
  const rows = cells
    .filter((cell) => cell.workload === workload)
    .map(({ server, samples }) => {
      const perSecond = valuesOf(samples, "perSecond");
      const limited = medianOf(samples, "loadCpu") > LOAD_LIMIT ? "≥ " : "";
      return [
        CANDIDATES[server].title,
        bare ? limited + formatSpread(ratioOf(perSecond, bare)) : "–",
        limited + formatSpread(spreadOf(perSecond), formatCount),
        formatFigure(medianOf(samples, "p50Ms")),
        formatFigure(medianOf(samples, "p99Ms")),
        formatFigure(medianOf(samples, "cpuMicros")),
        bareCpu ? formatFigure(ratioOf(valuesOf(samples, "cpuMicros"), bareCpu).median) : "–",
      ];
    });
  return {
    title: `${title} (${connections} ${connections === 1 ? "connection" : "connections"})`,
    header: ["server", "× bare route", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "CPU × bare"],
    rows,
  };
}

function pacedTable({ paced }: Results): Table {
  return {
    title: "Latency at half of the load that saturates Petstore",
    header: ["workload and server", "target/s", "requests/s", "p50 ms", "p99 ms", "p99 × bare route"],
    rows: paced.map(({ workload, server, samples, targetPerSecond }) => {
      const p99 = valuesOf(samples, "p99Ms");
      const bare = figuresOf(paced, workload, "bare", "p99Ms");
      return [
        `${workloadOf(workload).title}: ${CANDIDATES[server].title}`,
        formatCount(targetPerSecond),
        formatCount(medianOf(samples, "perSecond")),
        formatFigure(medianOf(samples, "p50Ms")),
        formatSpread(spreadOf(p99)),
        bare ? formatSpread(ratioOf(p99, bare)) : "–",
      ];
    }),
  };
}

function serversTable({ servers }: Results): Table {
  return {
    title: "Start to first response, and resident memory after all workloads",
    header: ["server", "start ms", "memory MB"],
    rows: servers.map(({ id, startMs, residentMb }) => [
      CANDIDATES[id].title,
      formatSpread(spreadOf(startMs)),
      formatFigure(residentMb),
    ]),
  };
}

function growthTable({ growth }: Results): Table {
  const workloads = growth[0]?.cells.map(({ workload }) => workloadOf(workload).title) ?? [];
  return {
    title: "Growth: Petstore alone, requests/s by number of pets",
    header: ["pets", ...workloads, "start ms", "memory MB"],
    rows: growth.map(({ pets, cells, startMs, residentMb }) => [
      formatCount(pets),
      ...cells.map(({ samples }) => formatSpread(spreadOf(valuesOf(samples, "perSecond")), formatCount)),
      formatSpread(spreadOf(startMs)),
      formatFigure(residentMb),
    ]),
  };
}

/** The same in a line for each number of pets. */
export function growthList({ growth }: Results): string[] {
  return growth.map(({ pets, cells, startMs, residentMb }) => {
    const rates = cells.map(
      ({ workload, samples }) =>
        `${workloadOf(workload).title}: ${formatCount(medianOf(samples, "perSecond"))}`,
    );
    const start = `started in ${formatFigure(median(startMs))} ms`;
    return `${formatCount(pets)} pets: ${[...rates, start, `${formatFigure(residentMb)} MB`].join("; ")}`;
  });
}

function sharedTable({ shared = [] }: Results): Table {
  const header = "workload; servers; requests/s; × embedded; by CPU ×; server µs; PostgreSQL µs; Valkey µs";
  return {
    title: "PostgreSQL and Valkey, by number of servers, against the embedded stores",
    note: `${SHARED.connections} connections. Servers, databases and load share the cores; CPU is that of one request. Both ratios are higher if it is faster.`,
    header: header.split("; "),
    rows: shared.map((cell) => {
      const { workload, servers, samples } = cell;
      const { rate, cpu } = sharedRatios(shared, cell);
      const of = (figure: keyof (typeof samples)[number]) => median(samples.map((each) => each[figure]));
      const figures = [rate.median, cpu.median, of("server"), of("postgres"), of("valkey")];
      const title = sharedWorkload(workload).title;
      return [title, `${servers || "embedded"}`, formatCount(of("perSecond")), ...figures.map(formatFigure)];
    }),
  };
}

function limiterTable({ limiter = {} }: Results): Table {
  const listOf = (figures: Readonly<Record<string, number>>) =>
    Object.entries(figures).map(([name, value]) => `${name} ${value}`);
  return {
    title: "Authentication and rate limit alone, without HTTP",
    header: ["measurement", "figures"],
    rows: Object.entries(limiter).map(([name, figures]) => [name, listOf(figures).join(", ")]),
  };
}
