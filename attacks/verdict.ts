import { formatFigure, type Table } from "../harness/table.ts";
import type { Attack } from "./attack.ts";
import type { FreeKeyFigures } from "./free-key-client.ts";
import type { GoodClientFigures, Latency } from "./good-client.ts";

export interface AttackResult {
  readonly name: string;
  readonly title: string;
  /** Resident memory of the server: its peak or, for an attack that is measured when it is ready, at the end. */
  readonly memoryMb?: number;
  /** Share of the time that the client's server had work but not its core, because other processes used it. */
  readonly cpuWait?: number;
  readonly client?: GoodClientFigures;
  readonly shared?: SharedFigures;
  /** Bars that were missed, and faults. Empty: the row passes. */
  readonly problems: readonly string[];
}

export interface SharedFigures {
  readonly freeKey: FreeKeyFigures;
  readonly valkeyEntries: number;
  /** How often a server took Valkey for unavailable, and counted on its own. */
  readonly valkeyOutages: number;
  readonly transactionsPerSecond: number;
}

const DEFAULT_P99_MS = 50;
/** What the Free plan allows in a minute. */
const FREE_REQUESTS = 60;

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

/** What two servers on shared engines must hold in addition. */
export function sharedProblemsOf(
  { bars }: Pick<Attack, "bars">,
  { freeKey, valkeyEntries, valkeyOutages, transactionsPerSecond }: SharedFigures,
): string[] {
  const problems: string[] = [];
  if (freeKey.allowed !== FREE_REQUESTS)
    problems.push(`a Free key got ${freeKey.allowed} requests, its limit is ${FREE_REQUESTS}`);
  if (valkeyOutages > 0) problems.push(`Valkey counted as unavailable ${valkeyOutages} times`);
  if (valkeyEntries > (bars.valkeyEntries ?? Infinity))
    problems.push(`${valkeyEntries} entries in Valkey, bar ${bars.valkeyEntries}`);
  if (transactionsPerSecond > (bars.transactionsPerSecond ?? Infinity)) {
    const bar = bars.transactionsPerSecond;
    problems.push(`${Math.round(transactionsPerSecond)} transactions a second in PostgreSQL, bar ${bar}`);
  }
  return problems;
}

export function attackTable(results: readonly AttackResult[], note: string): Table {
  const isShared = results.some(({ shared }) => shared !== undefined);
  return {
    title: "Attacks",
    note,
    header: [
      "attack",
      "memory MB",
      "CPU wait",
      "client's",
      "kept p50",
      "p99",
      "worst ms",
      "new p50",
      "p99",
      "worst ms",
      ...(isShared ? ["Free key", "Valkey entries", "transactions/s"] : []),
      "verdict",
    ],
    rows: results.map(({ title, memoryMb, cpuWait, client, shared, problems }) => [
      title,
      memoryMb === undefined ? "–" : formatFigure(memoryMb),
      percent(cpuWait),
      percent(client?.cpuWait),
      ...latencyCells(client?.keptConnection),
      ...latencyCells(client?.newConnections),
      ...(isShared ? sharedCells(shared) : []),
      problems.length === 0 ? "pass" : "FAIL",
    ]),
  };
}

function sharedCells(shared: SharedFigures | undefined): string[] {
  if (shared === undefined) return ["–", "–", "–"];
  const { freeKey, valkeyEntries, transactionsPerSecond } = shared;
  return [
    `${freeKey.allowed} of ${FREE_REQUESTS}`,
    String(valkeyEntries),
    formatFigure(transactionsPerSecond),
  ];
}

function percent(share: number | undefined): string {
  return share === undefined ? "–" : `${Math.round(share * 100)} %`;
}

function latencyCells(latency: Latency | undefined): string[] {
  return latency ? [latency.p50, latency.p99, latency.worst].map(formatFigure) : ["–", "–", "–"];
}
