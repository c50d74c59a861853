import { array, type Infer, integer, line, nullable, object, oneOf, quantity } from "../../api/schema.ts";
import { byOutcome, LIVE_RANGES, type RequestOutcome } from "../../domain/live-series.ts";
import { count, ok, tagged } from "./rows.ts";

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

const rangeTotals = {
  requests: count("Requests"),
  ...outcomes(count),
  p50: nullable(quantity("Milliseconds")),
  p99: nullable(quantity("Milliseconds")),
};

export const liveSeries = {
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
export const laterSeries = {
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

/** The operation that shows the live series of one server. */
export const SERIES_OPERATIONS = tagged("Server", {
  getSeries: {
    method: "GET",
    path: "/series",
    summary: "Show requests and response times of one server",
    description:
      "The part of the overview that the server that responds adds. Servers ask one another for it, through the database.",
    query: { range: Range },
    needsRunningServer: true,
    success: ok("The series", ServerSeries),
  },
});
