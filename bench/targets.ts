import type { Machine } from "../trials/harness/machine.ts";
import { median, ratioOf, type Spread, spreadOf } from "../trials/harness/statistics.ts";
import { besideWriters, createsPerSync, type DiskResults } from "./disk-figures.ts";
import { sharedName, type SharedSetup } from "./plan.ts";
import { type CandidateId, PEERS, type PeerId, type WorkloadId } from "./workloads.ts";

/** A target for Petstore. Both sides of a ratio are measured in the same run. */
export interface Target {
  readonly what: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly unit: "" | " MB" | " ms";
  /** Computes the figure; undefined if the run did not measure it. */
  measure(results: Results): Spread | undefined;
}

type Figures = readonly number[] | undefined;

function ratio(
  what: string,
  bound: Pick<Target, "atLeast" | "atMost">,
  figures: (results: Results) => readonly [ours: Figures, theirs: Figures],
): Target {
  const measure = (results: Results) => {
    const [ours, theirs] = figures(results);
    return ours && theirs && ratioOf(ours, theirs);
  };
  return { what, ...bound, unit: "", measure };
}

const againstBare = (workload: WorkloadId, what: string, atLeast: number) =>
  ratio(`${what}, against the bare route`, { atLeast }, ({ cells }) => [
    figuresOf(cells, workload, "ours"),
    figuresOf(cells, workload, "bare"),
  ]);

/** Compares with the fastest of the peers. The ratio is not measured if one of them is missing. */
function againstBest(peers: readonly PeerId[], workload: WorkloadId, what: string, atLeast: number): Target {
  return ratio(`${what}, against ${peers.join(" and ")}`, { atLeast }, ({ cells }) => {
    const figures = peers.flatMap((id) => [figuresOf(cells, workload, id) ?? []]);
    const best = figures.toSorted((a, b) => median(b) - median(a))[0];
    return [figuresOf(cells, workload, "ours"), figures.every(({ length }) => length > 0) ? best : undefined];
  });
}

const LARGEST = 10_000_000;
const SMALLEST = 1_000;
const sizeOf = ({ growth }: Results, size: number) => growth.find(({ pets }) => pets === size);

const whenGrown = (workload: WorkloadId, what: string, atLeast: number) =>
  ratio(`${what} with 10,000,000 pets, against 1,000`, { atLeast }, (results) => [
    figuresOf(sizeOf(results, LARGEST)?.cells ?? [], workload, "ours"),
    figuresOf(sizeOf(results, SMALLEST)?.cells ?? [], workload, "ours"),
  ]);

const p99AtHalfLoad = (workload: WorkloadId, what: string, atMost: number) =>
  ratio(`p99 of ${what} at half load, against the bare route`, { atMost }, ({ paced }) => [
    figuresOf(paced, workload, "ours", "p99Ms"),
    figuresOf(paced, workload, "bare", "p99Ms"),
  ]);

/**
 * Compares with the embedded stores. If the databases share the server's cores, only the CPU time of the server shows
 * its capacity.
 */
const againstEmbedded = (workload: WorkloadId, what: string, atLeast: number): Target => ({
  what: `${what} on PostgreSQL, against embedded, by rate or CPU`,
  atLeast,
  unit: "",
  measure({ shared = [] }) {
    const isOwn = (cell: SharedCell) => cell.workload === workload && sharedName(cell) === "1";
    const own = shared.find(isOwn);
    const ratios = own && Object.values(sharedRatios(shared, own));
    return ratios?.toSorted((a, b) => a.median - b.median).at(-1);
  },
});

/** The ratios to the embedded stores. Both are higher if the server is faster. */
export function sharedRatios(cells: readonly SharedCell[], { workload, samples }: SharedCell) {
  const embedded = cells.find((cell) => cell.workload === workload && cell.servers === 0)?.samples ?? [];
  const of = (each: readonly SharedSample[], figure: keyof SharedSample) => each.map((one) => one[figure]);
  const rate = ratioOf(of(samples, "perSecond"), of(embedded, "perSecond"));
  return { rate, cpu: ratioOf(of(embedded, "server"), of(samples, "server")) };
}

type DiskRatio = (results: DiskResults) => Spread | undefined;

const onSlowDisks = (what: string, bound: Pick<Target, "atLeast" | "atMost">, worst: DiskRatio): Target => ({
  what: `${what}, at every sync time`,
  ...bound,
  unit: "",
  measure: ({ disk }) => disk && worst(disk),
});

const withLargest = (
  what: string,
  unit: Target["unit"],
  figures: (size: Results["growth"][number]) => readonly number[],
): Target => ({
  what: `${what} with 10,000,000 pets`,
  atMost: 150,
  unit,
  measure(results) {
    const size = sizeOf(results, LARGEST);
    return size && spreadOf(figures(size));
  },
});

const TARGETS: readonly Target[] = [
  againstBare("list", "list, first page", 0.85),
  againstBare("get", "get", 0.85),
  againstBare("401", "401 without a key", 0.85),
  againstBare("401-unknown", "401 with an unknown key", 0.85),
  againstBare("429", "429", 0.85),
  againstBare("deep", "random deep page, not requested before", 0.45),
  againstBare("mix", "90/9/1 mix", 0.75),
  againstBare("create-32", "create at 32 connections, durable", 0.5),
  againstBest(["fastify"], "list", "list", 2.5),
  againstBest(["fastify"], "mix", "90/9/1 mix", 2.5),
  againstBest(["hono"], "list", "list", 1.5),
  againstBest(["hono"], "mix", "90/9/1 mix", 1.5),
  againstBest(PEERS, "create-32", "create at 32 connections", 5),
  whenGrown("list", "list", 0.9),
  whenGrown("create-32", "create", 0.9),
  p99AtHalfLoad("list", "list", 2),
  p99AtHalfLoad("get", "get", 2),
  p99AtHalfLoad("mix", "the mix", 2),
  withLargest("resident memory after the run", " MB", ({ residentMb }) => [residentMb]),
  withLargest("start to first response", " ms", ({ startMs }) => startMs),
  onSlowDisks(
    "p50 of a lone list beside writers, against without",
    { atMost: 1.3 },
    besideWriters("p50Ms", 1),
  ),
  onSlowDisks(
    "p99 of a lone list beside writers, against without",
    { atMost: 1.3 },
    besideWriters("p99Ms", 1),
  ),
  onSlowDisks(
    "lists of 32 connections beside writers, against without",
    { atLeast: 0.9 },
    besideWriters("perSecond", 32),
  ),
  onSlowDisks("creates, against one a connection in 1.5 × (sync + 1 ms)", { atLeast: 0.9 }, createsPerSync),
  againstEmbedded("list", "list", 0.5),
  againstEmbedded("get", "get", 0.5),
  againstEmbedded("create-32", "create", 0.5),
  againstEmbedded("mix", "mix with 10 % writes", 0.35),
];

export function judge(results: Results) {
  return TARGETS.map((target) => {
    const { atLeast = 0, atMost = Infinity } = target;
    const measured = target.measure(results);
    const reached = measured && measured.median >= atLeast && measured.median <= atMost;
    return { target, measured, reached };
  });
}

/** Everything that a run measured. The JSON file contains it, and tables, targets and chart are made from it. */
export interface Results {
  readonly format: 3;
  readonly takenAt: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  /** Whether server and load each had a core of their own. */
  readonly pinned: boolean;
  readonly seconds: number;
  /** The number of rounds of list, get, create and the mix. */
  readonly rounds: number;
  readonly otherRounds: number;
  readonly pets: number;
  readonly disk?: DiskResults;
  readonly cells: readonly Cell[];
  readonly paced: readonly (Cell & { readonly targetPerSecond: number })[];
  readonly servers: readonly (ServerFacts & { readonly id: CandidateId })[];
  readonly growth: readonly (ServerFacts & { readonly pets: number; readonly cells: readonly Cell[] })[];
  readonly shared?: readonly SharedCell[];
  /** The figures of the limiter by the name of the measurement. */
  readonly limiter?: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** One server with one workload, in one round. */
export interface Sample {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The user and system time of the server for one request. */
  readonly cpuMicros: number;
  /** The share of a core that the load generator used. Near 1, it was the bottleneck, and the server could do more. */
  readonly loadCpu: number;
}

/**
 * A sample of shared stores. CPU time is that of one request, in microseconds; with several servers, that of all of
 * them together.
 */
export type SharedSample = Readonly<Record<"perSecond" | "server" | "postgres" | "balancer", number>>;

export interface SharedCell extends SharedSetup {
  readonly workload: WorkloadId;
  readonly samples: readonly SharedSample[];
}

export interface Cell {
  readonly workload: WorkloadId;
  readonly server: CandidateId;
  readonly samples: readonly Sample[];
}

export interface ServerFacts {
  readonly startMs: readonly number[];
  readonly residentMb: number;
}

/** One figure in all rounds. */
export function figuresOf(
  cells: readonly Cell[],
  workload: WorkloadId,
  server: CandidateId,
  figure: keyof Sample = "perSecond",
): readonly number[] | undefined {
  const cell = cells.find((each) => each.workload === workload && each.server === server);
  return cell?.samples.map((sample) => sample[figure]);
}
