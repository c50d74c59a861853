import { formatFigure, type Table } from "../harness/table.ts";
import type { Attack } from "./attack.ts";
import type { GoodClientFigures, Latency } from "./good-client.ts";

export interface AttackResult {
  readonly name: string;
  readonly title: string;
  /** Resident memory of the server: its peak or, for an attack that is measured when it is ready, at the end. */
  readonly memoryMb?: number;
  /** Share of the time that the server had work but not its core, because other processes used it. */
  readonly cpuWait?: number;
  readonly client?: GoodClientFigures;
  /** Bars that were missed, and faults. Empty: the row passes. */
  readonly problems: readonly string[];
}

const DEFAULT_P99_MS = 50;

export function problemsOf(
  { bars }: Pick<Attack, "bars">,
  memory: number,
  { keptConnection, newConnections, failures }: GoodClientFigures,
): string[] {
  const { p99Ms = DEFAULT_P99_MS, memoryMb = Infinity } = bars;
  const problems: string[] = [];
  const requireP99 = (what: string, { p99 }: Latency) => {
    if (p99 >= p99Ms) problems.push(`${what}: p99 ${formatFigure(p99)} ms, bar ${p99Ms} ms`);
  };
  requireP99("kept connection", keptConnection);
  requireP99("new connections", newConnections);
  if (memory > memoryMb) problems.push(`memory ${formatFigure(memory)} MB, bar ${memoryMb} MB`);
  if (failures.length > 0) problems.push(`${failures.length} requests failed: ${failures[0]}`);
  return problems;
}

export function attackTable(results: readonly AttackResult[], note: string): Table {
  return {
    title: "Attacks",
    note,
    header: [
      "attack",
      "memory MB",
      "CPU wait",
      "kept p50",
      "p99",
      "worst ms",
      "new p50",
      "p99",
      "worst ms",
      "verdict",
    ],
    rows: results.map(({ title, memoryMb, cpuWait, client, problems }) => [
      title,
      memoryMb === undefined ? "–" : formatFigure(memoryMb),
      cpuWait === undefined ? "–" : `${Math.round(cpuWait * 100)} %`,
      ...latencyCells(client?.keptConnection),
      ...latencyCells(client?.newConnections),
      problems.length === 0 ? "pass" : "FAIL",
    ]),
  };
}

function latencyCells(latency: Latency | undefined): string[] {
  return latency ? [latency.p50, latency.p99, latency.worst].map(formatFigure) : ["–", "–", "–"];
}
