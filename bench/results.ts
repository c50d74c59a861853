import type { ContestantId } from "./contestants.ts";
import type { Machine } from "./machine.ts";
import type { Sample } from "./measure.ts";
import type { WorkId } from "./work.ts";

/** All that a run found out: the JSON file. Tables, bars and chart are made of it. */
export interface Results {
  readonly format: 1;
  readonly takenAt: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly pinned: boolean;
  readonly seconds: number;
  readonly rounds: number;
  readonly animals: number;
  readonly cells: readonly Cell[];
  readonly paced: readonly PacedCell[];
  readonly servers: readonly ServerFacts[];
  readonly growth: readonly GrowthStep[];
  readonly limiter?: LimiterFigures;
  /** What could not take part, and why. */
  readonly omitted: readonly { readonly id: ContestantId; readonly reason: string }[];
}

export interface Cell {
  readonly work: WorkId;
  readonly server: ContestantId;
  readonly samples: readonly Sample[];
}

/** At a rate that both servers are given alike. */
export interface PacedCell extends Cell {
  readonly targetPerSecond: number;
}

export interface ServerFacts {
  readonly id: ContestantId;
  readonly startMs: readonly number[];
  readonly residentMb?: number;
}

export interface GrowthStep {
  readonly animals: number;
  readonly startMs: readonly number[];
  readonly residentMb: number;
  readonly cells: readonly Cell[];
}

/** As bench/limiter.ts prints them, by the name of the measurement. */
export type LimiterFigures = Readonly<Record<string, Readonly<Record<string, number>>>>;

export function samplesOf(
  cells: readonly Cell[],
  work: WorkId,
  server: ContestantId,
): readonly Sample[] | undefined {
  return cells.find((cell) => cell.work === work && cell.server === server)?.samples;
}

export function throughputOf(
  cells: readonly Cell[],
  work: WorkId,
  server: ContestantId,
): readonly number[] | undefined {
  return samplesOf(cells, work, server)?.map(({ perSecond }) => perSecond);
}
