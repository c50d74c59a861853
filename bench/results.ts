import type { Machine } from "../harness/machine.ts";
import type { CandidateId } from "./candidates.ts";
import type { WorkloadId } from "./workloads.ts";

/** Everything that a run measured: the JSON file, from which tables, targets and chart are made. */
export interface Results {
  readonly format: 2;
  readonly takenAt: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  /** Server and load each had a core of their own. */
  readonly pinned: boolean;
  readonly seconds: number;
  readonly rounds: number;
  readonly pets: number;
  readonly cells: readonly Cell[];
  readonly paced: readonly (Cell & { readonly targetPerSecond: number })[];
  readonly servers: readonly (ServerFacts & { readonly id: CandidateId })[];
  readonly growth: readonly (ServerFacts & { readonly pets: number; readonly cells: readonly Cell[] })[];
  /** By the name of the measurement. */
  readonly limiter?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly omitted: readonly { readonly id: CandidateId; readonly reason: string }[];
}

/** One server with one workload, in one round. */
export interface Sample {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** User and system time of the server for one request. */
  readonly cpuMicros: number;
  /** Share of a core that the load generator used; near 1 it was the bottleneck, and the server could do more. */
  readonly loadCpu: number;
}

export interface Cell {
  readonly workload: WorkloadId;
  readonly server: CandidateId;
  readonly samples: readonly Sample[];
}

interface ServerFacts {
  readonly startMs: readonly number[];
  readonly residentMb: number;
}

/** One figure of all rounds. */
export function figuresOf(
  cells: readonly Cell[],
  workload: WorkloadId,
  server: CandidateId,
  figure: keyof Sample = "perSecond",
): readonly number[] | undefined {
  const cell = cells.find((each) => each.workload === workload && each.server === server);
  return cell?.samples.map((sample) => sample[figure]);
}
