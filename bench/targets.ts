import { median, ratioOf, type Spread, spreadOf } from "../harness/statistics.ts";
import { CANDIDATES, PEERS } from "./candidates.ts";
import { figuresOf, type Results } from "./results.ts";
import type { WorkloadId } from "./workloads.ts";

/** What Petstore has to reach; both sides of a ratio are measured in the same run. */
export interface Target {
  readonly what: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly unit: "" | " MB" | " ms";
  /** Undefined if the run did not measure it. */
  measure(results: Results): Spread | undefined;
}

type Bound = Pick<Target, "atLeast" | "atMost">;
type Figures = readonly number[] | undefined;

function ratio(
  what: string,
  bound: Bound,
  figures: (results: Results) => readonly [ours: Figures, theirs: Figures],
): Target {
  const measure = (results: Results) => {
    const [ours, theirs] = figures(results);
    return ours && theirs && ratioOf(ours, theirs);
  };
  return { what, ...bound, unit: "", measure };
}

function againstBare(workload: WorkloadId, what: string, atLeast: number): Target {
  return ratio(`${what}, against the bare route`, { atLeast }, ({ cells }) => [
    figuresOf(cells, workload, "ours"),
    figuresOf(cells, workload, "bare"),
  ]);
}

type Peers = "Node peer" | "Bun peer" | "peer";

/** Not measured if a peer is missing, since that one may be the fastest. */
function againstBest(peers: Peers, workload: WorkloadId, what: string, atLeast: number): Target {
  const kinds = { "Node peer": ["node"], "Bun peer": ["bun"], peer: ["node", "bun"] }[peers];
  const ids = PEERS.filter((id) => kinds.includes(CANDIDATES[id].kind));
  return ratio(`${what}, against the best ${peers}`, { atLeast }, ({ cells }) => {
    const figures = ids.map((id) => figuresOf(cells, workload, id) ?? []);
    const [best] = figures.toSorted((a, b) => median(b) - median(a));
    const isComplete = figures.every(({ length }) => length > 0);
    return [figuresOf(cells, workload, "ours"), isComplete ? best : undefined];
  });
}

const LARGEST = 10_000_000;
const SMALLEST = 1_000;
const sizeOf = ({ growth }: Results, size: number) => growth.find(({ pets }) => pets === size);

function whenGrown(workload: WorkloadId, what: string, atLeast: number): Target {
  return ratio(`${what} with 10,000,000 pets, against 1,000`, { atLeast }, (results) => [
    figuresOf(sizeOf(results, LARGEST)?.cells ?? [], workload, "ours"),
    figuresOf(sizeOf(results, SMALLEST)?.cells ?? [], workload, "ours"),
  ]);
}

function p99AtHalfLoad(workload: WorkloadId, what: string, atMost: number): Target {
  return ratio(`p99 of ${what} at half load, against the bare route`, { atMost }, ({ paced }) => [
    figuresOf(paced, workload, "ours", "p99Ms"),
    figuresOf(paced, workload, "bare", "p99Ms"),
  ]);
}

function withLargest(
  what: string,
  unit: Target["unit"],
  figures: (size: Results["growth"][number]) => readonly number[],
): Target {
  const measure = (results: Results) => {
    const size = sizeOf(results, LARGEST);
    return size && spreadOf(figures(size));
  };
  return { what: `${what} with 10,000,000 pets`, atMost: 150, unit, measure };
}

export const TARGETS: readonly Target[] = [
  againstBare("list", "list, first page", 0.85),
  againstBare("get", "get", 0.85),
  againstBare("401", "401 without a key", 0.85),
  againstBare("401-unknown", "401 with an unknown key", 0.85),
  againstBare("429", "429", 0.85),
  againstBare("deep", "random deep page, not requested before", 0.45),
  againstBare("mix", "90/9/1 mix", 0.75),
  againstBare("create-32", "create at 32 connections, durable", 0.5),
  againstBest("Node peer", "list", "list", 2.5),
  againstBest("Node peer", "mix", "90/9/1 mix", 2.5),
  againstBest("Bun peer", "list", "list", 1.5),
  againstBest("Bun peer", "mix", "90/9/1 mix", 1.5),
  againstBest("peer", "create-32", "create at 32 connections", 5),
  whenGrown("list", "list", 0.9),
  whenGrown("create-32", "create", 0.9),
  p99AtHalfLoad("list", "list", 2),
  p99AtHalfLoad("get", "get", 2),
  p99AtHalfLoad("mix", "the mix", 2),
  withLargest("resident memory after the run", " MB", ({ residentMb }) => [residentMb]),
  withLargest("start to first response", " ms", ({ startMs }) => startMs),
];

export function judge(results: Results) {
  return TARGETS.map((target) => {
    const { atLeast = 0, atMost = Infinity } = target;
    const measured = target.measure(results);
    const reached = measured && measured.median >= atLeast && measured.median <= atMost;
    return { target, measured, reached };
  });
}
