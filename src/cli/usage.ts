import { formatTime, grouped } from "../api/formatting.ts";
import { keyId, USAGE_OPTIONS } from "../config/key-options.ts";
import type { ValuesOf } from "../config/parse-options.ts";
import { UsageError } from "../config/usage-error.ts";
import { optional, periodOf } from "../config/value-types.ts";
import type { PlanName } from "../domain/plans.ts";
import { DAY_MS } from "../domain/rate-limit.ts";
import {
  byRequests,
  type CountedOperation,
  HOUR_MS,
  type KeyTotals,
  OPERATION_IDS,
  type OperationId,
  type RequestCounts,
  startOf,
  type UsageInterval,
  type UsagePeriod,
  type UsageRow,
} from "../domain/usage-history.ts";
import type { Key } from "../operator/operations.ts";
import { type Context, defineCommand } from "./command.ts";
import {
  type CallOperator,
  firstItems,
  OPERATOR_OPTIONS,
  SERVER_SETTINGS,
  withOperator,
} from "./operator.ts";
import { columns, json, shortened } from "./output.ts";

export const usage = defineCommand({
  name: "usage",
  summary: "Show how many requests API keys have made",
  description:
    "Adds up the requests of one key, or of all keys. ADMITTED requests were within the rate limits; ERRORS are those of them whose response was 4xx or 5xx. LIMITED and BANNED requests got 429. Hours are kept for 35 days and days for 400 days. While a server runs, the counts are at most five seconds old. By default the period is the last 24 hours by hour, and otherwise the last 30 days. The first and the last interval count in full. --operation leaves out requests to other operations; LAST USED is about all of them.",
  positionals: { ID: optional(keyId) },
  options: { ...USAGE_OPTIONS, ...OPERATOR_OPTIONS, ...SERVER_SETTINGS },
  examples: [
    "petstore usage",
    "petstore usage 3 --by hour --since 24h",
    "petstore usage --operation getPet",
    "petstore usage --since 2026-10-01 --until 2026-10-31 --csv > october.csv",
  ],
  async run(input, context) {
    const { positionals, values } = input;
    const { json: isJson, csv: isCsv, operation } = values;
    if (isJson && isCsv) return new UsageError("--json and --csv exclude each other; use one of them");
    const { ID: id } = positionals;
    const by = values.by ?? (id === undefined && !isCsv ? "key" : "day");
    const period = usagePeriod(by, values, context.clock.now());
    if (period instanceof UsageError) return period;
    const show = by === "key" ? showTotals : showIntervals;
    const format = isJson ? "json" : isCsv ? "csv" : "table";
    return withOperator(input, context, async (call) => {
      const keys = id === undefined ? await allKeys(call) : [await call("getKey", { id })];
      await show({ call, keys, isOne: id !== undefined, period, operation, format, print: context.print });
      return undefined;
    });
  },
});

async function allKeys(call: CallOperator): Promise<readonly Key[]> {
  return (await firstItems(Infinity, (page) => call("listKeys", { query: page }))).items;
}

/** Up to this length, a sum over the whole period adds hours, which are exact to the hour, and otherwise days. */
const SUM_OF_HOURS_MS = 2 * DAY_MS;

function usagePeriod(
  by: "hour" | "day" | "key",
  values: Pick<ValuesOf<typeof USAGE_OPTIONS>, "since" | "until">,
  now: number,
): UsagePeriod | UsageError {
  const given = periodOf(values, now);
  if (given instanceof UsageError) return given;
  const { until = now } = given;
  const start = by === "hour" ? startOf("hour", until) - 23 * HOUR_MS : startOf("day", until) - 29 * DAY_MS;
  const { since = start } = given;
  if (by !== "key") return { by, since, until };
  return { by: until - since <= SUM_OF_HOURS_MS ? "hour" : "day", since, until };
}

interface Shown {
  readonly call: CallOperator;
  readonly keys: readonly Key[];
  readonly isOne: boolean;
  readonly period: UsagePeriod;
  /** Undefined means all. */
  readonly operation: OperationId | undefined;
  readonly format: "table" | "json" | "csv";
  readonly print: Context["print"];
}

async function showTotals(shown: Shown): Promise<void> {
  const { keys, period, format, print } = shown;
  const byId = new Map(keys.map((key) => [key.id, key]));
  const views: KeyTotalsView[] = [];
  for (const totals of await totalsOf(shown)) {
    const key = byId.get(totals.keyId);
    if (key) views.push(keyTotalsView(key, totals));
  }
  const text = {
    table: () => keyTotalsTable(views, period),
    json: () => json(views),
    csv: () => keyTotalsCsv(views),
  };
  await print(text[format]());
}

/** The most keys whose sums the operation responds with. */
const MAX_TOTALS = 10_000;

async function totalsOf(shown: Shown): Promise<readonly KeyTotals[]> {
  const { call, keys, isOne, period, operation } = shown;
  if (operation === undefined && !isOne && keys.length <= MAX_TOTALS) {
    const { items } = await call("getUsage", { query: { ...queryOf(period), limit: MAX_TOTALS } });
    return items;
  }
  const totals: KeyTotals[] = [];
  for await (const [{ id: keyId }, rows] of usageOf(shown)) {
    if (rows.length > 0) totals.push({ keyId, ...rows.reduce<RequestCounts>(plus, NO_REQUESTS) });
  }
  return totals.toSorted(byRequests);
}

function queryOf({ by, since, until }: UsagePeriod) {
  return { by, since: formatTime(since), until: formatTime(until) };
}

async function showIntervals(shown: Shown): Promise<void> {
  const { period, format, print } = shown;
  if (format === "table") {
    const sums = new UsageSums();
    for await (const [, rows] of usageOf(shown)) sums.add(rows);
    await print(intervalTables(sums, period));
  } else if (format === "csv") {
    await print(USAGE_CSV_HEADER);
    for await (const [key, rows] of usageOf(shown)) await print(usageCsv(key, rows));
  } else {
    let separator = "[\n";
    for await (const [, rows] of usageOf(shown)) {
      if (rows.length === 0) continue;
      await print(separator + usageJson(rows));
      separator = ",\n";
    }
    await print(separator === ",\n" ? "\n]\n" : "[]\n");
  }
}

/** Keys that are read at the same time: PostgreSQL gets the next query before it has answered the last. */
const KEYS_AT_ONCE = 32;

/** Key by key, because the usage of all keys can be larger than the memory. */
async function* usageOf({
  call,
  keys,
  period,
  operation,
}: Shown): AsyncGenerator<[Key, readonly UsageRow[]]> {
  for (let from = 0; from < keys.length; from += KEYS_AT_ONCE) {
    const some = keys.slice(from, from + KEYS_AT_ONCE);
    const read = async (key: Key): Promise<[Key, readonly UsageRow[]]> => {
      const { items } = await call("getKeyUsage", { id: key.id, query: queryOf(period) });
      const rows = items.map(({ start, operation: called, admitted, limited, banned, errors }) => {
        return {
          keyId: key.id,
          start: Date.parse(start),
          operation: called,
          admitted,
          limited,
          banned,
          errors,
        };
      });
      return [key, operation === undefined ? rows : rows.filter((row) => row.operation === operation)];
    };
    yield* await Promise.all(some.map(read));
  }
}

/** A key in `petstore usage --by key`. */
export interface KeyTotalsView extends KeyTotals {
  readonly name: string;
  readonly plan: PlanName;
  readonly lastUsedAt: string | null;
}

export function keyTotalsView(
  { id, name, plan, lastUsedAt }: Key,
  { admitted, limited, banned, errors }: KeyTotals,
): KeyTotalsView {
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
    shortened(view.name, 40),
    view.plan,
    ...countCells(view),
    view.lastUsedAt?.replace(/\.\d+/, "") ?? "-",
  ]);
  const total = ["Total", "", "", ...countCells(views.reduce<RequestCounts>(plus, NO_REQUESTS))];
  const header = ["ID", "NAME", "PLAN", ...COUNT_HEADER, "LAST USED"];
  return columns([header, ...rows, total], { numbers: [3, 4, 5, 6] });
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
  const byInterval = [
    [period.by.toUpperCase(), ...COUNT_HEADER],
    ...intervals.map(([start, counts]) => [formatStart(start, period.by)].concat(countCells(counts))),
    total,
  ];
  const numbers = [1, 2, 3, 4];
  return [byInterval, [["OPERATION", ...COUNT_HEADER], ...operations]]
    .map((rows) => columns(rows, { numbers }))
    .join("\n");
}

/** `2026-11-15` or `2026-11-15T09:00Z`. */
function formatStart(start: number, by: UsageInterval): string {
  const time = formatTime(start);
  return by === "day" ? time.slice(0, 10) : `${time.slice(0, 16)}Z`;
}

/** The first and the last interval, which count in full. */
function noRequests({ by, since, until }: UsagePeriod): string {
  const [first, last] = [since, until].map((time) => formatStart(startOf(by, time), by));
  return `There were no requests from ${first} to ${last}, both included.\n`;
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

export function usageCsv({ id, name }: Pick<Key, "id" | "name">, rows: readonly UsageRow[]): string {
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

/** What a spreadsheet takes for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** An apostrophe before a name that looks like a formula: spreadsheets would calculate it, which can send data away. */
function csvCell(cell: string): string {
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
