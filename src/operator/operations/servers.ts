import {
  array,
  boolean,
  type Infer,
  integer,
  line,
  nullable,
  object,
  oneOf,
  quantity,
} from "../../api/schema.ts";
import { ENVIRONMENTS } from "../../domain/environments.ts";
import { count, ok, tagged, time } from "./rows.ts";

/** The time after which a server that was killed, or the database, counts as gone. */
export const LATE_SECONDS = 5;

export const environment = oneOf(ENVIRONMENTS, "Environment of the server");
export const version = line(40, { description: "Version of Petstore", examples: ["1.1.0"] });

const state = oneOf(["available", "unavailable"], "Whether it can be used now");
const latencyMs = nullable(
  quantity("Time of the last request to it"),
  "Null if it is unavailable, or had no request yet",
);

export const Server = object("The server that responds, and what it depends on", {
  environment,
  version,
  runtime: line(60, { description: "The runtime and its version", examples: ["Bun 1.4.4"] }),
  startedAt: time("When the server started"),
  publicUrl: line(2_000, "URL of the API as clients see it"),
  instance: object({
    address: line(300, {
      description: "Where the server listens for clients",
      examples: ["127.0.0.1:8080"],
    }),
    pid: integer({ min: 1, max: 2 ** 31, description: "Process ID" }),
  }),
  database: object({
    kind: oneOf(["SQLite", "PostgreSQL"]),
    state,
    latencyMs,
    waitsForStandby: boolean(
      "Whether commits wait for a synchronous standby that is away, so that writes get 503",
    ),
  }),
  rateLimiter: object({ kind: oneOf(["memory", "PostgreSQL"]), state, latencyMs }),
  draining: boolean("Whether the server is about to stop"),
});
export type Server = Infer<typeof Server>;

const serverFigures = {
  requestsPerSecond: quantity("Requests per second, in the last 5 seconds"),
  requests: count("Requests since the start"),
  rejections: count("Requests since the start that were limited or banned"),
  serverErrors: count("Responses since the start with a status of 500 or more"),
  connections: count("Open connections"),
  p50: nullable(
    quantity("Median time of a response in the last 15 minutes, in milliseconds"),
    "Null if there were none",
  ),
  p99: nullable(quantity("99th percentile of that time"), "Null if there were none"),
};

const ListedServer = object("The state of a server, as reported by the server every second", {
  id: line(100, "Identifier, until the server stops"),
  name: line(310, { description: "Name of its machine and its port", examples: ["web-1:8080"] }),
  state: oneOf(
    ["up", "unknown", "lost"],
    `\`unknown\`: not heard of for ${LATE_SECONDS} seconds, as in an outage of the database. \`lost\`: it was killed in the last hour, or has lost its network, and has not started again`,
  ),
  adminUrl: nullable(line(2_000, "URL of its listener for operators"), "Null if it has none"),
  version,
  startedAt: time("When it started"),
  seenAt: time("When the server that responds last heard of it"),
  differing: array(
    object("A setting, or the version", {
      name: line(60, { description: "The flag without its dashes", examples: ["public-url"] }),
      value: line(300, "What this server has"),
    }),
    { json: "What should be the same on all servers, and differs here from most others" },
  ),
  clockAheadMs: nullable(
    integer({
      min: -8.64e15,
      max: 8.64e15,
      description: "Its clock minus that of PostgreSQL, in milliseconds",
    }),
    "Null on SQLite, and for a server of an earlier release",
  ),
  ...serverFigures,
});

export const ServerList = object("The servers on the database", {
  items: array(ListedServer, { json: "The oldest first" }),
  total: object("Of all servers together", serverFigures),
});
export type ServerList = Infer<typeof ServerList>;

/** The operations that show servers. */
export const SERVER_OPERATIONS = tagged("Server", {
  getServer: {
    method: "GET",
    path: "/server",
    summary: "Show the server and what it depends on",
    description: "Describes the server that responds, and the state of its database and its rate limiter.",
    needsRunningServer: true,
    success: ok("The server", Server),
  },
  listServers: {
    method: "GET",
    path: "/servers",
    summary: "List the servers on the database",
    description:
      "Lists all servers, and their figures together. A server that stops is removed; one that was killed is `lost` after 5 seconds, for an hour. While the database is unavailable, the list is that of before.",
    success: ok("The servers", ServerList),
  },
});
