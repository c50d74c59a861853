import { openStores } from "../adapters.ts";
import { storageOf, type StorageConfig } from "../config/config.ts";
import { USAGE_OPTIONS } from "../config/history-options.ts";
import { KEY_OPTIONS, keyId } from "../config/key-options.ts";
import { STORAGE_OPTIONS } from "../config/options.ts";
import type { ValuesOf } from "../config/parse-options.ts";
import { timeOf } from "../config/time-types.ts";
import { UsageError } from "../config/usage-error.ts";
import { optional } from "../config/value-types.ts";
import type { OperationId } from "../contract/operations.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import type { UsageHistoryStore } from "../domain/ports.ts";
import { DAY_MS } from "../domain/rate-limit.ts";
import {
  byRequests,
  HOUR_MS,
  type KeyTotals,
  type RequestCounts,
  startOf,
  type UsagePeriod,
  type UsageRow,
} from "../domain/usage-history.ts";
import { type Context, defineCommand, type Outcome } from "./command.ts";
import { databaseExists, noSuchKey } from "./keys.ts";
import { json } from "./output.ts";
import {
  intervalTables,
  type KeyTotalsView,
  keyTotalsCsv,
  keyTotalsTable,
  keyTotalsView,
  NO_REQUESTS,
  plus,
  UsageSums,
  USAGE_CSV_HEADER,
  usageCsv,
  usageJson,
} from "./usage-output.ts";

export const usage = defineCommand({
  name: "usage",
  summary: "Show how many requests API keys have made",
  description:
    "Adds up the requests of one key, or of all keys. ADMITTED requests were within the rate limits; ERRORS are those of them whose response was 4xx or 5xx. LIMITED and BANNED requests got 429. Hours are kept for 35 days and days for 400 days. While a server runs, the counts are at most five seconds old. By default the period is the last 24 hours by hour, and otherwise the last 30 days. The first and the last interval count in full. --operation leaves out requests to other operations; LAST USED is about all of them.",
  positionals: { ID: optional(keyId) },
  options: { ...USAGE_OPTIONS, ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: [
    "petstore usage",
    "petstore usage 3 --by hour --since 24h",
    "petstore usage --operation getPet",
    "petstore usage --since 2026-10-01 --until 2026-10-31 --csv > october.csv",
  ],
  async run({ positionals: { ID: id }, values }, { clock, print }) {
    if (values.json && values.csv) {
      return new UsageError("--json and --csv exclude each other; use one of them");
    }
    const by = values.by ?? (id === undefined && !values.csv ? "key" : "day");
    const period = periodOf(by, values, clock.now());
    if (period instanceof UsageError) return period;
    const show = by === "key" ? showTotals : showIntervals;
    const { json: isJson, csv: isCsv, operation } = values;
    const format = isJson ? "json" : isCsv ? "csv" : "table";
    return withUsageHistory(storageOf(values), id, (keys, history) =>
      show({ keys, history, period, operation, format, print }),
    );
  },
});

/** Up to this length, a sum over the whole period adds hours, which are exact to the hour, and otherwise days. */
const SUM_OF_HOURS_MS = 2 * DAY_MS;

function periodOf(
  by: "hour" | "day" | "key",
  values: Pick<ValuesOf<typeof USAGE_OPTIONS>, "since" | "until">,
  now: number,
): UsagePeriod | UsageError {
  const until = values.until === undefined ? now : timeOf(values.until, now);
  const start = by === "hour" ? startOf("hour", until) - 23 * HOUR_MS : startOf("day", until) - 29 * DAY_MS;
  const since = values.since === undefined ? start : timeOf(values.since, now);
  if (since > until) return new UsageError("--since is after --until; the period must have a length");
  if (by !== "key") return { by, since, until };
  return { by: until - since <= SUM_OF_HOURS_MS ? "hour" : "day", since, until };
}

type UsageHistory = Pick<UsageHistoryStore, "readUsage" | "usageByKey" | "lastUsed">;

const NO_HISTORY: UsageHistory = { readUsage: () => [], usageByKey: () => [], lastUsed: () => new Map() };

/** Opens the stores for the duration of `work`, with all keys or the one that is given. Creates no database. */
async function withUsageHistory(
  storage: StorageConfig,
  id: number | undefined,
  work: (keys: readonly ApiKey[], history: UsageHistory) => Promise<void>,
): Promise<Outcome> {
  if (!databaseExists(storage)) {
    if (id !== undefined) return noSuchKey(storage, id);
    await work([], NO_HISTORY);
    return undefined;
  }
  const { keys, usageHistory, close } = await openStores(storage);
  try {
    const all = id === undefined ? await keys.listKeys() : [await keys.getKey(id)];
    const found = all.filter((key) => key !== undefined);
    if (id !== undefined && found.length === 0) return noSuchKey(storage, id);
    await work(found, usageHistory);
    return undefined;
  } finally {
    await close();
  }
}

interface Shown {
  readonly keys: readonly ApiKey[];
  readonly history: UsageHistory;
  readonly period: UsagePeriod;
  /** Undefined means all. */
  readonly operation: OperationId | undefined;
  readonly format: "table" | "json" | "csv";
  readonly print: Context["print"];
}

async function showTotals(shown: Shown): Promise<void> {
  const { keys, history, period, format, print } = shown;
  const byId = new Map(keys.map((key) => [key.id, key]));
  const lastUsed = await history.lastUsed(keys.length === 1 ? [...byId.keys()] : undefined);
  const views: KeyTotalsView[] = [];
  for (const totals of await totalsOf(shown)) {
    const key = byId.get(totals.keyId);
    if (key) views.push(keyTotalsView(key, totals, lastUsed.get(key.id)));
  }
  const text = {
    table: () => keyTotalsTable(views, period),
    json: () => json(views),
    csv: () => keyTotalsCsv(views),
  };
  await print(text[format]());
}

async function totalsOf(shown: Shown): Promise<readonly KeyTotals[]> {
  const { history, period, operation } = shown;
  if (operation === undefined) return history.usageByKey(period);
  const totals: KeyTotals[] = [];
  for await (const [{ id: keyId }, rows] of usageOf(shown)) {
    if (rows.length > 0) totals.push({ keyId, ...rows.reduce<RequestCounts>(plus, NO_REQUESTS) });
  }
  return totals.toSorted(byRequests);
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
async function* usageOf(shown: Shown): AsyncGenerator<[ApiKey, readonly UsageRow[]]> {
  const { keys, history, period, operation } = shown;
  for (let from = 0; from < keys.length; from += KEYS_AT_ONCE) {
    const some = keys.slice(from, from + KEYS_AT_ONCE);
    const read = async (key: ApiKey): Promise<[ApiKey, readonly UsageRow[]]> => {
      const rows = await history.readUsage({ keyId: key.id, ...period });
      return [key, operation === undefined ? rows : rows.filter((row) => row.operation === operation)];
    };
    yield* await Promise.all(some.map(read));
  }
}
