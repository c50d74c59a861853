import {
  array,
  dateTime,
  type Infer,
  line,
  nullable,
  object,
  oneOf,
  queryInteger,
} from "../../api/schema.ts";
import { KeyId } from "../../domain/key-fields.ts";
import { OPERATION_IDS } from "../../domain/operation-ids.ts";
import { DAILY_USAGE_DAYS, HOURLY_USAGE_DAYS, USAGE_INTERVALS } from "../../domain/usage-history.ts";
import { Plan } from "./keys.ts";
import { count, cursor, nextCursor, ok, tagged, time } from "./rows.ts";

/** The number of keys whose requests getUsage adds up. */
export const USAGE_LIMIT = { min: 1, max: 10_000, default: 100 } as const;

export const Interval = oneOf(USAGE_INTERVALS, "Length of the intervals, in UTC");

export const counts = {
  admitted: count("Requests that the rate limits allowed"),
  limited: count("Requests that were rejected with 429 `rate_limited`"),
  banned: count("Requests that were rejected with 429 `key_banned`"),
  errors: count("Those of the admitted requests whose response was 4xx or 5xx"),
};

const period = { since: time("Start of the first interval"), until: time("End of the last interval") };

const IntervalCounts = object("Requests of one operation in one hour or day", {
  start: time("Start of the interval"),
  operation: oneOf<string>(
    [...OPERATION_IDS, "none"],
    "`none`: rejected before it was routed, or an unknown path",
  ),
  ...counts,
});

export const KeyUsageHistory = object(
  "Requests of an API key over time. Intervals without requests are not listed.",
  { by: Interval, ...period, items: array(IntervalCounts) },
);
export type KeyUsageHistory = Infer<typeof KeyUsageHistory>;

const KeyTotals = object("Requests of an API key in a period", {
  keyId: KeyId,
  name: nullable(line(100, "Name of the API key")),
  plan: nullable(Plan),
  ...counts,
  lastUsedAt: nullable(time("When the key was last used")),
});

export const UsageTotals = object("Requests of all API keys in a period", {
  ...period,
  items: array(KeyTotals, { json: "Most used first" }),
  nextCursor,
});
export type UsageTotals = Infer<typeof UsageTotals>;

/** The period of the usage history. Its first and last hours or days count in full. */
const queriedPeriod = {
  since: dateTime("In the first hour or day"),
  until: dateTime("In the last hour or day, which is included; by default now"),
};

/** The operations that show the usage history. */
export const USAGE_OPERATIONS = tagged("Usage", {
  getKeyUsage: {
    method: "GET",
    path: "/keys/{keyId}/usage",
    cost: 2,
    summary: "Show the requests of an API key over time",
    description: `Hours are kept for ${HOURLY_USAGE_DAYS} days, days for ${DAILY_USAGE_DAYS} days. By default the last 24 hours by hour, or the last 30 days by day. Counts are at most 5 seconds old.`,
    query: { by: Interval, ...queriedPeriod },
    success: ok("Requests by interval and operation", KeyUsageHistory),
  },
  getUsage: {
    method: "GET",
    path: "/usage",
    cost: 30,
    summary: "Show the requests of all API keys",
    description: "Adds up the requests of each key in a period: by default the last 30 days.",
    query: {
      by: Interval,
      ...queriedPeriod,
      limit: queryInteger(USAGE_LIMIT),
      cursor: cursor("usage"),
    },
    maxRowsRead: Infinity,
    success: ok("Requests by key, most used first", UsageTotals),
  },
});
