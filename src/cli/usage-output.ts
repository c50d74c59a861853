import { printable } from "../config/usage-error.ts";
import { grouped } from "../config/value-types.ts";
import { formatTime } from "../contract/formatting.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import type { PlanName } from "../domain/plans.ts";
import {
  type CountedOperation,
  type KeyTotals,
  OPERATION_IDS,
  type RequestCounts,
  type UsageInterval,
  type UsagePeriod,
  type UsageRow,
} from "../domain/usage-history.ts";
import { columns } from "./output.ts";

/** A key in `petstore usage --by key`. */
export interface KeyTotalsView extends KeyTotals {
  readonly name: string;
  readonly plan: PlanName;
  readonly lastUsedAt: string | null;
}

export function keyTotalsView(
  { id, name, plan }: ApiKey,
  { admitted, limited, banned, errors }: KeyTotals,
  lastUsed: number | undefined,
): KeyTotalsView {
  const lastUsedAt = lastUsed === undefined ? null : formatTime(lastUsed);
  return { keyId: id, name, plan, admitted, limited, banned, errors, lastUsedAt };
}

const COUNT_HEADER = ["ADMITTED", "LIMITED", "BANNED", "ERRORS"];
export const NO_REQUESTS: RequestCounts = { admitted: 0, limited: 0, banned: 0, errors: 0 };

export const plus = (a: RequestCounts, b: RequestCounts): RequestCounts => ({
  admitted: a.admitted + b.admitted,
  limited: a.limited + b.limited,
  banned: a.banned + b.banned,
  errors: a.errors + b.errors,
});

const numbersOf = ({ admitted, limited, banned, errors }: RequestCounts) => [
  admitted,
  limited,
  banned,
  errors,
];
const countCells = (counts: RequestCounts) => numbersOf(counts).map(grouped);

export function keyTotalsTable(views: readonly KeyTotalsView[], period: UsagePeriod): string {
  if (views.length === 0) return noRequests(period);
  const rows = views.map((view) => [
    String(view.keyId),
    printable(view.name),
    view.plan,
    ...countCells(view),
    view.lastUsedAt?.replace(/\.\d+/, "") ?? "-",
  ]);
  const total = ["Total", "", "", ...countCells(views.reduce<RequestCounts>(plus, NO_REQUESTS))];
  return columns([["ID", "NAME", "PLAN", ...COUNT_HEADER, "LAST USED"], ...rows, total]);
}

/** The sums over all keys. */
export class UsageSums {
  readonly byStart = new Map<number, RequestCounts>();
  readonly byOperation = new Map<CountedOperation, RequestCounts>();

  add(rows: readonly UsageRow[]): void {
    for (const row of rows) {
      this.byStart.set(row.start, plus(this.byStart.get(row.start) ?? NO_REQUESTS, row));
      this.byOperation.set(row.operation, plus(this.byOperation.get(row.operation) ?? NO_REQUESTS, row));
    }
  }
}

/** One table by interval and one by operation. */
export function intervalTables({ byStart, byOperation }: UsageSums, period: UsagePeriod): string {
  if (byStart.size === 0) return noRequests(period);
  const intervals = [...byStart].toSorted(([a], [b]) => a - b);
  const total = ["Total", ...countCells([...byStart.values()].reduce(plus))];
  const operations = [...OPERATION_IDS, "none" as const].flatMap((operation) => {
    const counts = byOperation.get(operation);
    return counts ? [[operation, ...countCells(counts)]] : [];
  });
  return `${columns([
    [period.by.toUpperCase(), ...COUNT_HEADER],
    ...intervals.map(([start, counts]) => [formatStart(start, period.by)].concat(countCells(counts))),
    total,
  ])}\n${columns([["OPERATION", ...COUNT_HEADER], ...operations])}`;
}

/** `2026-11-15` or `2026-11-15T09:00Z`. */
function formatStart(start: number, by: UsageInterval): string {
  const time = formatTime(start);
  return by === "day" ? time.slice(0, 10) : `${time.slice(0, 16)}Z`;
}

function noRequests({ since, until }: UsagePeriod): string {
  return `There were no requests from ${formatTime(since)} to ${formatTime(until)}.\n`;
}

/** One object per line. */
export function usageJson(rows: readonly UsageRow[]): string {
  return rows
    .map(({ keyId, start, operation, ...counts }) =>
      JSON.stringify({ keyId, start: formatTime(start), operation, ...counts }),
    )
    .map((line) => `  ${line}`)
    .join(",\n");
}

export const USAGE_CSV_HEADER = "key_id,name,start,operation,admitted,limited,banned,errors\n";

export function usageCsv({ id, name }: ApiKey, rows: readonly UsageRow[]): string {
  return rows
    .map((row) => csvLine([id, name, formatTime(row.start), row.operation, ...numbersOf(row)]))
    .join("");
}

export function keyTotalsCsv(views: readonly KeyTotalsView[]): string {
  const lines = views.map((view) =>
    csvLine([view.keyId, view.name, view.plan, ...numbersOf(view), view.lastUsedAt ?? ""]),
  );
  return `key_id,name,plan,admitted,limited,banned,errors,last_used_at\n${lines.join("")}`;
}

/** RFC 4180, with the line ends of this system. */
function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map((cell) => csvCell(String(cell))).join(",")}\n`;
}

function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
