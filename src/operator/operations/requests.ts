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
} from "../../api/schema.ts";
import { KeyId } from "../../domain/key-fields.ts";
import { MAX_LOGGED_LENGTH, MAX_LOGGED_METHOD_LENGTH } from "../../domain/logging.ts";
import { OPERATION_IDS } from "../../domain/operation-ids.ts";
import { HOUR_MS } from "../../text/time-units.ts";
import { cursor, limit, nextCursor, ok, since, tagged, time, until } from "./rows.ts";

const conditions = {
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

/** The operation that shows the requests of clients. */
export const REQUEST_OPERATIONS = tagged("Requests", {
  listRequests: {
    method: "GET",
    path: "/requests",
    cost: 2,
    summary: "List the last requests of clients",
    description:
      "Lists the requests that meet every condition, newest first. Each server keeps its last requests in memory, as many as `--request-log` has room for: the server that responds asks all others that share the rate limits. `servers` names those whose requests are missing, and why.",
    query: { ...conditions, since, until, limit, cursor: cursor("requests") },
    needsRunningServer: true,
    maxRowsRead: Infinity,
    success: ok("A page of requests", RequestPage),
  },
});
