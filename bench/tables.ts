import { machineText } from "../trials/harness/machine.ts";
import { median, ratioOf, type Spread, spreadOf } from "../trials/harness/statistics.ts";
import { formatCount, formatFigure, formatSpread, type Table, tableOf } from "../trials/harness/table.ts";
import { diskTables } from "./disk-figures.ts";
import { SHARED, sharedName, sharedWorkload } from "./plan.ts";
import {
  type Cell,
  figuresOf,
  judge,
  type Results,
  type Sample,
  type ServerFacts,
  type SharedCell,
  sharedRatios,
  type SharedSample,
} from "./targets.ts";
import { PEERS, TITLES, type WorkloadId, workloadOf } from "./workloads.ts";

/** The share of its core above which the load generator limits the throughput instead of the server. */
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

/** The table of Petstore's throughput with each workload, and that of its peers, as a share of the bare route's. */
export function summaryTable({ cells, takenAt, machine, rounds, seconds, pets }: Results): Table {
  const share = (id: Cell["server"]) => (cell: Cell) => {
    const [figures, bare] = [id, "bare" as const].map((each) => figuresOf(cells, cell.workload, each));
    return figures && bare ? formatFigure(ratioOf(figures, bare).median) : "–";
  };
  const peers = PEERS.map((id) => [TITLES[id].replace(/ .*/, ""), share(id)] as const);
  const ours = cells.filter(({ server }) => server === "ours");
  const table = tableOf("Throughput", ours, {
    workload: titleOf,
    "requests/s": ({ samples }) => formatCount(medianOf(samples, "perSecond")),
    "p99 ms": ({ samples }) => formatFigure(medianOf(samples, "p99Ms")),
    Petstore: share("ours"),
    ...Object.fromEntries(peers),
  });
  const note = `Medians of ${rounds} rounds of ${seconds} s with ${formatCount(pets)} pets, on ${machineText(machine)}, ${takenAt.slice(0, 10)}. The columns with the names of servers are their throughput as a share of the bare route's.`;
  return { ...table, note };
}

export function targetsTable(results: Results): Table {
  return tableOf("Targets", judge(results), {
    "ratio or figure": ({ target }) => target.what,
    target: ({ target: { atLeast, atMost, unit } }) =>
      (atLeast === undefined ? `≤ ${atMost}` : `≥ ${formatFigure(atLeast)}`) + unit,
    measured: ({ target, measured }) => (measured ? formatSpread(measured) + target.unit : "–"),
    result: ({ reached }) => (reached === undefined ? "not measured" : reached ? "reached" : "MISSED"),
  });
}

export function detailTables(results: Results): Table[] {
  const workloads = [...new Set(results.cells.map(({ workload }) => workload))];
  const tables = workloads.map((workload) => workloadTable(results, workload));
  const others = [pacedTable, serversTable, growthTable, sharedTable, limiterTable].map((make) =>
    make(results),
  );
  return [...tables, ...others, ...diskTables(results.disk)].filter(({ rows }) => rows.length > 0);
}

const valuesOf = (samples: readonly Sample[], figure: keyof Sample) => samples.map((each) => each[figure]);
const medianOf = (samples: readonly Sample[], figure: keyof Sample) => median(valuesOf(samples, figure));
const titleOf = ({ workload }: Pick<Cell, "workload">) => workloadOf(workload).title;
const serverOf = ({ server }: Cell) => TITLES[server];
const figureOf = (figure: keyof Sample) => (cell: Cell) => formatFigure(medianOf(cell.samples, figure));

/** The ratios of each round to the bare route. */
function ratioColumn(cells: readonly Cell[], figure: keyof Sample, format: (ratio: Spread) => string) {
  return ({ workload, samples }: Cell) => {
    const bare = figuresOf(cells, workload, "bare", figure);
    return bare ? format(ratioOf(valuesOf(samples, figure), bare)) : "–";
  };
}

function workloadTable({ cells }: Results, workload: WorkloadId): Table {
  const { title, connections } = workloadOf(workload);
  const limit = ({ samples }: Cell) => (medianOf(samples, "loadCpu") > LOAD_LIMIT ? "≥ " : "");
  const rate = ratioColumn(cells, "perSecond", formatSpread);
  const own = cells.filter((cell) => cell.workload === workload);
  return tableOf(`${title} (${connections} ${connections === 1 ? "connection" : "connections"})`, own, {
    server: serverOf,
    "× bare route": (cell) => limit(cell) + rate(cell),
    "requests/s": (cell) =>
      limit(cell) + formatSpread(spreadOf(valuesOf(cell.samples, "perSecond")), formatCount),
    "p50 ms": figureOf("p50Ms"),
    "p99 ms": figureOf("p99Ms"),
    "CPU µs/request": figureOf("cpuMicros"),
    "CPU × bare": ratioColumn(cells, "cpuMicros", (ratio) => formatFigure(ratio.median)),
  });
}

function pacedTable({ paced }: Results): Table {
  return tableOf("Latency at half of the load that saturates Petstore", paced, {
    "workload and server": (cell) => `${titleOf(cell)}: ${serverOf(cell)}`,
    "target/s": ({ targetPerSecond }) => formatCount(targetPerSecond),
    "requests/s": ({ samples }) => formatCount(medianOf(samples, "perSecond")),
    "p50 ms": figureOf("p50Ms"),
    "p99 ms": ({ samples }) => formatSpread(spreadOf(valuesOf(samples, "p99Ms"))),
    "p99 × bare route": ratioColumn(paced, "p99Ms", formatSpread),
  });
}

const START_AND_MEMORY = {
  "start ms": ({ startMs }: ServerFacts) => formatSpread(spreadOf(startMs)),
  "memory MB": ({ residentMb }: ServerFacts) => formatFigure(residentMb),
};

function serversTable({ servers }: Results): Table {
  return tableOf("Start to first response, and resident memory after all workloads", servers, {
    server: ({ id }) => TITLES[id],
    ...START_AND_MEMORY,
  });
}

function growthTable({ growth }: Results): Table {
  const rates = (growth[0]?.cells ?? []).map(({ workload }) => {
    const rateOf = ({ cells }: (typeof growth)[number]) =>
      formatSpread(spreadOf(figuresOf(cells, workload, "ours") ?? []), formatCount);
    return [workloadOf(workload).title, rateOf] as const;
  });
  return tableOf("Growth: Petstore alone, requests/s by number of pets", growth, {
    pets: ({ pets }) => formatCount(pets),
    ...Object.fromEntries(rates),
    ...START_AND_MEMORY,
  });
}

/** The same figures as a list, with a line for each number of pets. */
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
  const figure = (name: keyof SharedSample, format: (value: number) => string) => (cell: SharedCell) =>
    format(median(cell.samples.map((sample) => sample[name])));
  const table = tableOf("PostgreSQL, by number of servers, against the embedded stores", shared, {
    workload: ({ workload }) => sharedWorkload(workload).title,
    servers: sharedName,
    "requests/s": figure("perSecond", formatCount),
    "× embedded": (cell) => formatFigure(sharedRatios(shared, cell).rate.median),
    "by CPU ×": (cell) => formatFigure(sharedRatios(shared, cell).cpu.median),
    "server µs": figure("server", formatFigure),
    "PostgreSQL µs": figure("postgres", formatFigure),
  });
  const note = `${SHARED.connections} connections. Servers, databases and load share the cores; CPU is that of one request. Both ratios are higher if it is faster.`;
  return { ...table, note };
}

function limiterTable({ limiter = {} }: Results): Table {
  return tableOf("Authentication and rate limit alone, without HTTP", Object.entries(limiter), {
    measurement: ([name]) => name,
    figures: ([, figures]) =>
      Object.entries(figures)
        .map(([name, value]) => `${name} ${value}`)
        .join(", "),
  });
}
