import { array, type Infer, line, nullable, object } from "../../api/schema.ts";
import { EXPIRES_SOON_MS } from "../../domain/api-keys.ts";
import { KeyId } from "../../domain/key-fields.ts";
import { CLOSE_TO_LIMIT_PERCENT } from "../../domain/rate-limit.ts";
import { DEPRECATED_USE_DAYS } from "../../domain/usage-history.ts";
import { DAY_MS } from "../../text/time-units.ts";
import { KeyStateSchema, KeyUsage, Plan } from "./keys.ts";
import { count, ok, tagged, time } from "./rows.ts";
import { laterSeries, liveSeries, Range } from "./series.ts";
import { counts } from "./usage.ts";

const TopKey = object("One of the API keys with the most requests", {
  id: KeyId,
  name: line(100, "Name of the API key"),
  plan: Plan,
  state: KeyStateSchema,
  usage: nullable(KeyUsage, "Null while it cannot be read"),
  ...counts,
  lastUsedAt: nullable(time("When the key was last used")),
});

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

/** The operation that shows the requests of all servers and the keys behind them. */
export const OVERVIEW_OPERATIONS = tagged("Server", {
  getOverview: {
    method: "GET",
    cost: 2,
    path: "/overview",
    summary: "Show requests and response times",
    description:
      "Live series of all servers on the database, each since it started: steps of 5 seconds for up to an hour, steps of a minute for up to 24 hours. Requests and connections are sums; response times are those of the slowest server.",
    query: { range: Range },
    success: ok("The overview", Overview),
  },
});
