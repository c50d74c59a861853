import { formatTime, grouped } from "../../text/formatting.ts";
import { csvRow, spreadsheetCell } from "../../archive/row-encoders.ts";
import type { Options } from "../../config/parse-options.ts";
import { UsageError } from "../../config/usage-error.ts";
import {
  switchOption,
  choice,
  optional,
  type PointInTime,
  pointInTime,
  timeOf,
} from "../../config/value-types.ts";
import { DAY_MS } from "../../text/time-units.ts";
import {
  compareByRequests,
  COUNTS,
  DAILY_USAGE_DAYS,
  defaultSince,
  HOURLY_USAGE_DAYS,
  NO_REQUESTS,
  type RequestCounts,
  intervalStart,
  sumOfRequests,
  type UsageInterval,
  type UsagePeriod,
} from "../../domain/usage-history.ts";
import { OPERATION_IDS } from "../../domain/operation-ids.ts";
import { type Key, type KeyUsageHistory, USAGE_LIMIT, type UsageTotals } from "../../operator/operations.ts";
import { defineCommand } from "../command.ts";
import { ID_TYPES } from "../operation-flags.ts";
import { type CallOperation, CALL_OPTIONS } from "../calls/call.ts";
import { pagesOf } from "../calls/pages.ts";
import { openOperations } from "../calls/open-operations.ts";
import { json, type Screen, shortened, table, type TableColumn } from "../output.ts";

const USAGE_OPTIONS = {
  by: {
    type: choice("INTERVAL", ["hour", "day", "key"]),
    defaultText: "day with an ID or --csv, otherwise key",
    help: "What a row adds up: an hour, a day (both UTC), or the whole period",
  },
  operation: {
    type: choice("OPERATION", OPERATION_IDS),
    defaultText: "all",
    help: "Only this operation",
  },
  since: { type: pointInTime, help: "Start of the period" },
  until: { type: pointInTime, defaultText: "now", help: "End of the period" },
  csv: switchOption("Print CSV: one row per key, interval and operation"),
} as const satisfies Options;

export const usage = defineCommand({
  name: "usage",
  summary: "Show how many requests API keys have made",
  description: `Adds up the requests of one key, or of all keys. ADMITTED requests were within the rate limits; ERRORS are those of them whose response was 4xx or 5xx. LIMITED and BANNED requests got 429. Hours are kept for ${HOURLY_USAGE_DAYS} days and days for ${DAILY_USAGE_DAYS} days. While a server runs, the counts are at most five seconds old. By default the period is the last 24 hours by hour, and otherwise the last 30 days. The first and the last interval count in full. --operation leaves out requests to other operations; LAST USED is about all of them.`,
  data: "reads",
  positionals: { ID: optional(ID_TYPES.keyId) },
  options: { ...USAGE_OPTIONS, ...CALL_OPTIONS },
  examples: [
    "petstore usage",
    "petstore usage 3 --by hour --since 24h",
    "petstore usage --operation getPet",
    "petstore usage --since 2026-10-01 --until 2026-10-31 --csv > october.csv",
  ],
  async run(commandLine, context) {
    const { json: isJson, csv: isCsv, operation } = commandLine.values;
    if (isJson && isCsv) throw new UsageError("--json and --csv exclude each other; use one of them");
    const { ID: id } = commandLine.positionals;
    const by = commandLine.values.by ?? (id === undefined && !isCsv ? "key" : "day");
    const period = usagePeriod(by, commandLine.values, context.clock.now());
    const { screen, print } = context;
    await using operations = await openOperations(commandLine, context);
    const query = { call: operations.call, id, period, operation };
    if (isCsv) {
      for await (const text of csvText(query, by)) await print(text);
    } else if (by === "key") {
      const totals = await totalsOf(query);
      if (isJson) return json(totals);
      if (totals.length === 0) return noRequests(period);
      return table(TOTAL_COLUMNS, [...totals, sumOfRequests(totals)], screen);
    } else if (isJson) {
      for await (const text of jsonText(query)) await print(text);
    } else return await intervalTables(query, screen);
    return undefined;
  },
});

/** Up to this length, a sum over the whole period adds hours, which are exact to the hour, and otherwise days. */
const SUM_OF_HOURS_MS = 2 * DAY_MS;

function usagePeriod(
  by: "hour" | "day" | "key",
  given: { readonly since: PointInTime | undefined; readonly until: PointInTime | undefined },
  now: number,
): UsagePeriod {
  const until = given.until ? timeOf(given.until, now) : now;
  const since = given.since ? timeOf(given.since, now) : defaultSince(by === "hour" ? "hour" : "day", until);
  if (since > until) throw new UsageError("--since is after --until; the period must have a length");
  const interval = until - since <= SUM_OF_HOURS_MS ? "hour" : "day";
  return { by: by === "key" ? interval : by, since, until };
}

interface Query {
  readonly call: CallOperation;
  /** Undefined means all keys. */
  readonly id: bigint | undefined;
  readonly period: UsagePeriod;
  /** Undefined means all. */
  readonly operation: string | undefined;
}

const COUNT_COLUMNS = COUNTS.map((name): TableColumn<RequestCounts> => [
  name.toUpperCase(),
  (row) => grouped(row[name]),
  "number",
]);

type KeyTotals = UsageTotals["items"][number];

const TOTAL_COLUMNS: readonly TableColumn<RequestCounts & Partial<KeyTotals>>[] = [
  ["ID", ({ keyId = "Total" }) => String(keyId)],
  ["NAME", ({ name = "" }) => shortened(name ?? "-", 40)],
  ["PLAN", ({ plan = "" }) => plan ?? "-"],
  ...COUNT_COLUMNS,
  ["LAST USED", ({ lastUsedAt }, screen) => (lastUsedAt === undefined ? "" : screen.shortTime(lastUsedAt))],
];

async function totalsOf(query: Query): Promise<readonly KeyTotals[]> {
  if (query.operation === undefined && query.id === undefined) return usedKeys(query);
  const totals: KeyTotals[] = [];
  for await (const [{ keyId, name, plan, lastUsedAt }, rows] of usageOf(query)) {
    if (rows.length > 0) totals.push({ keyId, name, plan, ...sumOfRequests(rows), lastUsedAt });
  }
  return totals.toSorted(compareByRequests);
}

/** The keys with requests in the period, most used first. */
async function usedKeys({ call, period }: Pick<Query, "call" | "period">): Promise<readonly KeyTotals[]> {
  const read = (page: object) => call("getUsage", { query: { ...parametersOf(period), ...page } });
  // Requests that are counted between two pages change the order, so both can have a key.
  const keys = new Map<number, KeyTotals>();
  for await (const { items } of pagesOf({ limit: Infinity, pageLimit: USAGE_LIMIT.max, read }))
    for (const totals of items) keys.set(totals.keyId, totals);
  return [...keys.values()];
}

/** The number of requests of each key with some since 24 hours ago, to the hour. */
export async function requestsOfLastDay(
  call: CallOperation,
  now: number,
): Promise<ReadonlyMap<number, number>> {
  const keys = await usedKeys({ call, period: { by: "hour", since: now - DAY_MS, until: now } });
  return new Map(keys.map(({ keyId, admitted, limited, banned }) => [keyId, admitted + limited + banned]));
}

function parametersOf({ by, since, until }: UsagePeriod) {
  return { by, since: formatTime(since), until: formatTime(until) };
}

async function* jsonText(query: Query): AsyncGenerator<string> {
  let separator = "[\n";
  for await (const rows of namedRowsOf(query)) {
    if (rows.length === 0) continue;
    yield separator + rows.map((row) => `  ${JSON.stringify(row)}`).join(",\n");
    separator = ",\n";
  }
  yield separator === ",\n" ? "\n]\n" : "[]\n";
}

type IntervalRow = KeyUsageHistory["items"][number];

/** Keys that are read at the same time: PostgreSQL gets the next query before it has responded to the last. */
const KEYS_AT_ONCE = 32;

type UsedKey = Pick<KeyTotals, "keyId" | "name" | "plan" | "lastUsedAt">;

function usedKeyOf({ id: keyId, name, plan, lastUsedAt }: Key): UsedKey {
  return { keyId, name, plan, lastUsedAt };
}

/** Key by key, because the usage of all keys can be larger than the memory. */
async function* usageOf(query: Query): AsyncGenerator<[UsedKey, readonly IntervalRow[]]> {
  const { call, id, period, operation } = query;
  const keys =
    id === undefined
      ? (await usedKeys(query)).toSorted((a, b) => a.keyId - b.keyId)
      : [usedKeyOf(await call("getKey", { id }))];
  const read = async (key: UsedKey): Promise<[UsedKey, readonly IntervalRow[]]> => {
    const { items } = await call("getKeyUsage", { id: key.keyId, query: parametersOf(period) });
    return [key, items.filter((row) => operation === undefined || row.operation === operation)];
  };
  for (let from = 0; from < keys.length; from += KEYS_AT_ONCE)
    yield* await Promise.all(keys.slice(from, from + KEYS_AT_ONCE).map(read));
}

/** The rows of each key, with the key. */
async function* namedRowsOf(query: Query) {
  for await (const [{ keyId, name }, rows] of usageOf(query))
    yield rows.map((row) => Object.assign({ keyId, name }, row));
}

/** One table by interval and one by operation. */
async function intervalTables(query: Query, screen: Screen): Promise<string> {
  const { period } = query;
  const starts = new Map<string, RequestCounts>();
  const operations = new Map<string, RequestCounts>(
    [...OPERATION_IDS, "none"].map((id) => [id, NO_REQUESTS]),
  );
  for await (const [, rows] of usageOf(query)) {
    for (const row of rows) {
      const start = shortStart(row.start, period.by);
      starts.set(start, sumOfRequests([starts.get(start) ?? NO_REQUESTS, row]));
      operations.set(row.operation, sumOfRequests([operations.get(row.operation) ?? NO_REQUESTS, row]));
    }
  }
  if (starts.size === 0) return noRequests(period);
  const tableOf = (title: string, sums: readonly (readonly [string, RequestCounts])[]) => {
    const items = sums.map(([label, counts]) => ({ label, ...counts }));
    return table([[title, ({ label }) => label], ...COUNT_COLUMNS], items, screen);
  };
  const byStart = [...starts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const used = [...operations].filter(([, counts]) => COUNTS.some((name) => counts[name] > 0));
  return [
    tableOf(period.by.toUpperCase(), [...byStart, ["Total", sumOfRequests(starts.values())]]),
    tableOf("OPERATION", used),
  ].join("\n");
}

/** `2026-11-15` or `2026-11-15T09:00Z`. */
function shortStart(start: string, by: UsageInterval): string {
  return by === "day" ? start.slice(0, 10) : `${start.slice(0, 16)}Z`;
}

/** The first and the last interval, which count in full. */
function noRequests({ by, since, until }: UsagePeriod): string {
  const [first, last] = [since, until].map((time) => shortStart(formatTime(intervalStart(by, time)), by));
  return `There were no requests from ${first} to ${last}, both included.\n`;
}

/** RFC 4180, with the line ends of this system. The columns have the names of the fields of --json. */
async function* csvText(query: Query, by: UsageInterval | "key"): AsyncGenerator<string> {
  const own = by === "key" ? ["plan", ...COUNTS, "lastUsedAt"] : ["start", "operation", ...COUNTS];
  const fields = ["keyId", "name", ...own];
  const linesOf = (rows: readonly Readonly<Record<string, unknown>>[]) =>
    rows
      .map((row) => `${csvRow(fields.map((field) => spreadsheetCell(String(row[field] ?? ""))))}\n`)
      .join("");
  const header = `${fields.join(",")}\n`;
  // Nothing is printed of the totals of a key that does not exist.
  if (by === "key") return yield header + linesOf(await totalsOf(query));
  yield header;
  for await (const rows of namedRowsOf(query)) yield linesOf(rows);
}
