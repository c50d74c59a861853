import {
  array,
  type Infer,
  int64,
  integer,
  line,
  matching,
  nullable,
  object,
  oneOf,
  quantity,
  queryIdentifier,
  queryInteger,
  type Schema,
  valueSchema,
} from "../api/schema.ts";
import {
  ACTOR_KINDS,
  AUDIT_ACTIONS,
  AUDIT_TARGET_KINDS,
  type AuditedValues,
  type AuditTarget,
} from "../domain/audit.ts";
import { byOutcome, LIVE_RANGES, type RequestOutcome } from "../domain/live-series.ts";
import { DEPRECATED_USE_DAYS, USAGE_INTERVALS } from "../domain/usage-history.ts";
import { OPERATION_IDS } from "../domain/operation-ids.ts";
import { CLOSE_TO_LIMIT_PERCENT } from "../domain/rate-limit.ts";
import { MAX_LOGGED_LENGTH, MAX_LOGGED_METHOD_LENGTH } from "../domain/logging.ts";
import { EXPIRES_SOON_MS } from "../domain/api-keys.ts";
import { DAY_MS, HOUR_MS } from "../text/time-units.ts";
import { KeyId } from "../domain/key-fields.ts";
import { count, KeyStateSchema, KeyUsage, nextCursor, Plan, time } from "./key-schemas.ts";

export const ActorKind = oneOf(ACTOR_KINDS, "Where the change was made");
export const Action = oneOf(AUDIT_ACTIONS, "What was done");

const TARGET = new RegExp(`^(${AUDIT_TARGET_KINDS.join("|")}):([1-9]\\d{0,17})$`);

/** The target in a query, such as `key:7`. */
export const target: Schema<AuditTarget> = valueSchema(
  {
    kind: "other",
    expected: "a kind and an identifier such as key:7, pet:12, order:3 or operator:2",
    json: { type: "string", pattern: TARGET.source, examples: ["key:7"] },
  },
  (value) => {
    const match = typeof value === "string" ? TARGET.exec(value) : null;
    const kind = AUDIT_TARGET_KINDS.find((candidate) => candidate === match?.[1]);
    return kind && { kind, id: BigInt(match?.[2] ?? 0) };
  },
);

const auditedValues = (description: string): Schema<AuditedValues> =>
  valueSchema(
    {
      kind: "other",
      expected: "an object of strings, numbers, booleans, nulls and arrays of strings",
      json: { type: "object", description },
    },
    (value) => (isAuditedValues(value) ? value : undefined),
  );

function isAuditedValues(value: unknown): value is AuditedValues {
  return typeof value === "object" && value !== null && Object.values(value).every(isAuditedValue);
}

function isAuditedValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((item) => typeof item === "string");
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

const AuditItem = object("A change that somebody made", {
  id: int64("Identifier of the entry; a later entry has a greater one"),
  at: time("When the change was made"),
  actor: object({
    operator: nullable(
      line(64, "Name of the operator"),
      "Null for the server and for commands on its machine",
    ),
    kind: ActorKind,
    name: nullable(line(300, "User of the machine, address of the client, or server")),
  }),
  action: Action,
  target: nullable(
    object(
      "What was changed",
      { kind: oneOf(AUDIT_TARGET_KINDS), id: int64("Its identifier") },
      { name: line(100, "Name of an API key; missing while it cannot be read") },
    ),
  ),
  before: nullable(auditedValues("The earlier values of the fields that changed")),
  after: nullable(auditedValues("The new values of the fields that changed")),
});
export type AuditItem = Infer<typeof AuditItem>;

export const AuditPage = object("A page of the audit trail, newest first", {
  items: array(AuditItem),
  nextCursor,
});

export const requestConditions = {
  keyId: queryIdentifier("Only requests with this API key"),
  status: matching(
    /^[1-5](?:\d\d|xx)$/,
    "a status such as 429, or a class such as 5xx",
    "Only responses with this status, or a class of them: `5xx`",
  ),
  code: matching(
    /^[a-z_]{1,60}$/,
    "an error code such as rate_limited",
    "Only requests with this error code",
  ),
  operation: oneOf<string>(OPERATION_IDS, "Only requests to this operation"),
  address: matching(
    /^(?:\d{1,3}(?:\.\d{1,3}){3}|(?=.*:)[\da-f.:]{2,45}(?:\/64)?)$/i,
    "an address such as 192.0.2.7 or 2001:db8::7",
    "Only requests of this address; of IPv6, of its /64 network",
  ),
  slowerThanMs: queryInteger({
    min: 1,
    max: HOUR_MS,
    description: "Only requests that took more milliseconds than this",
  }),
  requestId: line(128, "Only the request with this `X-Request-Id`"),
  scope: oneOf(["all", "server"], {
    description: "`server`: only the server that responds",
    default: "all",
  }),
};

const CUT = `cut after ${MAX_LOGGED_LENGTH} characters`;

const RequestEntrySchema = object(
  "A request that a server has responded to",
  {
    id: int64("Identifier; a later request has a greater one"),
    at: time("When the response was ready"),
    requestId: line(130, "`X-Request-Id` of the response"),
    keyId: nullable(KeyId, "Null without a valid API key"),
    method: line(
      MAX_LOGGED_METHOD_LENGTH,
      `\`other\` if it has more than ${MAX_LOGGED_METHOD_LENGTH} characters`,
    ),
    path: line(MAX_LOGGED_LENGTH, `Without the query, and ${CUT}`),
    operation: nullable(
      oneOf<string>(OPERATION_IDS),
      "Null for a page, an unknown path, and a request that was rejected before it was routed",
    ),
    status: integer({ min: 100, max: 599, description: "499: the client did not wait for the response" }),
    code: nullable(line(60), "Code of the error"),
    durationMs: quantity("From the head of the request to the response, in milliseconds"),
    address: line(100, "As limits count it: for IPv6, its /64 network"),
    userAgent: nullable(
      line(MAX_LOGGED_LENGTH),
      `Cut after ${MAX_LOGGED_LENGTH} characters; null if it is blank`,
    ),
    server: line(100, "Identifier of the server, as in `servers`"),
  },
  {
    message: nullable(line(MAX_LOGGED_LENGTH), `Message of the error, ${CUT}`),
    keyName: nullable(line(100), "Name of the API key; missing while it cannot be read"),
  },
);
export type RequestEntry = Infer<typeof RequestEntrySchema>;

export const RequestPage = object("A page of the last requests, newest first", {
  items: array(RequestEntrySchema),
  nextCursor,
  servers: array(
    object("A server that shares the rate limits", {
      id: line(100, "Identifier, until the server stops"),
      name: line(300, "Name of its machine"),
      problem: nullable(
        line(1_000),
        "Why its requests, or some of them, are not in the list; null if they are",
      ),
      since: nullable(time("When the oldest request was that it still has"), "Null if it has none"),
    }),
  ),
});
export type RequestPage = Infer<typeof RequestPage>;

export const Interval = oneOf(USAGE_INTERVALS, "Length of the intervals, in UTC");

const counts = {
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

export const Range = oneOf(LIVE_RANGES, "How far the series go back");

const series = (description: string) =>
  array(nullable(quantity()), { json: `${description}; null where there is no data` });

const OUTCOME_MEANINGS: Readonly<Record<RequestOutcome, string>> = {
  success: "Responses below 400",
  clientError: "4xx but 429",
  limited: "429 `rate_limited`",
  banned: "429 `key_banned`",
  serverError: "5xx",
};
const outcomes = <S>(of: (meaning: string) => S) => byOutcome((outcome) => of(OUTCOME_MEANINGS[outcome]));

const TopKey = object("One of the API keys with the most requests", {
  id: KeyId,
  name: line(100, "Name of the API key"),
  plan: Plan,
  state: KeyStateSchema,
  usage: nullable(KeyUsage, "Null while it cannot be read"),
  ...counts,
  lastUsedAt: nullable(time("When the key was last used")),
});

const rangeTotals = {
  requests: count("Requests"),
  ...outcomes(count),
  p50: nullable(quantity("Milliseconds")),
  p99: nullable(quantity("Milliseconds")),
};

const liveSeries = {
  range: Range,
  step: integer({ min: 1, max: 3_600, description: "Seconds from one point to the next" }),
  times: array(integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), {
    json: "Unix seconds of the end of each step, one for each point of the series",
  }),
  requests: object(outcomes((name) => series(`Requests in the step: ${name}`))),
  p50: series("Median of the response times in the step, in milliseconds"),
  p99: series("99th percentile of the response times in the step, in milliseconds"),
  connections: series("Open connections at the end of the step"),
  totals: object("The requests in the range", rangeTotals),
};

/** A server of an earlier release sends none of them. */
const laterSeries = {
  before: nullable(
    object("The requests in the period before, as long as the range", rangeTotals),
    "Null unless all servers ran during all of it",
  ),
};

export const ServerSeries = object(
  "The live series of the server that responds",
  { ...liveSeries, server: line(100, "Identifier of the server") },
  laterSeries,
);
export type ServerSeries = Infer<typeof ServerSeries>;

export const Overview = object(
  "The live series of all servers that share the rate limits, and the keys with the most requests",
  {
    ...liveSeries,
    missing: array(
      object("A server whose requests are not in the series", {
        name: line(310, "Name of its machine and its port"),
        problem: line(1_000, "Why they are missing"),
      }),
    ),
    bannedKeys: nullable(count("API keys that are banned now"), "Null while it cannot be read"),
    deprecatedKeys: count(
      `API keys that called a deprecated operation in the last ${DEPRECATED_USE_DAYS} days, on all servers`,
    ),
    topKeys: array(TopKey, { json: "By requests in the last 24 hours on all servers, most used first" }),
  },
  {
    ...laterSeries,
    expiringKeys: count(`API keys that are valid and expire within ${EXPIRES_SOON_MS / DAY_MS} days`),
    closeKeys: object(
      `API keys that are active and have used ${CLOSE_TO_LIMIT_PERCENT} % of a window or more`,
      {
        total: count("Their number"),
        first: nullable(
          object("The one with the least identifier", { id: KeyId, name: line(100, "Name of the API key") }),
        ),
      },
    ),
    keyRequests: count("Requests with an API key in the last 24 hours, on all servers"),
  },
);
export type Overview = Infer<typeof Overview>;
