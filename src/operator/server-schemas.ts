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
  text,
} from "../api/schema.ts";
import { ENVIRONMENTS } from "../domain/environments.ts";
import { count, time } from "./key-schemas.ts";

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
  rateLimiter: object({ kind: oneOf(["memory", "PostgreSQL", "Valkey"]), state, latencyMs }),
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
  ...serverFigures,
});

export const ServerList = object("The servers on the database", {
  items: array(ListedServer, { json: "The oldest first" }),
  total: object("Of all servers together", serverFigures),
});
export type ServerList = Infer<typeof ServerList>;

export const SETTING_SOURCES = ["default", "flag", "variable", "env file", "database"] as const;

const Setting = object(
  "A setting of the server that responds",
  {
    name: line(60, { description: "The flag without its dashes", examples: ["ban-length"] }),
    variable: line(80, { description: "The environment variable", examples: ["PETSTORE_BAN_LENGTH"] }),
    value: nullable(text(10_000, "The value in effect. Secrets are masked.")),
    default: nullable(text(10_000, "The value if nothing is set")),
    source: oneOf(SETTING_SOURCES, "Where the value comes from"),
    help: text(2_000, "What the setting does"),
  },
  {
    given: text(10_000, "What was set, if the value in effect is another"),
    isVariableOnly: boolean("Whether there is no flag, because others could read it in a list of processes"),
  },
);
export type Setting = Infer<typeof Setting>;

/** The setting as a user sets it. */
export function settingText({ name, variable, isVariableOnly }: Setting): string {
  return isVariableOnly ? variable : `--${name}`;
}

export const Settings = object("The settings of the server that responds", {
  items: array(Setting, { json: "In the order of `petstore serve --help`" }),
});

const responseOfReceiver = {
  status: nullable(
    integer({ min: 100, max: 599, description: "Status of the response" }),
    "Null without a response",
  ),
  error: nullable(line(300, "Why there was no response"), "Null if there was one"),
  durationMs: count("Milliseconds until the response, or until the attempt failed"),
};

export const Webhook = object("Where audit entries are delivered", {
  url: nullable(
    line(2_000, "URL of the receiver; a hash stands for its path and query"),
    "Null if none is configured on the server that responds",
  ),
  events: array(line(100), {
    json: "The actions that are delivered, such as `key.banned`, `operator.*` or `*`",
  }),
  waiting: count("Entries that wait for their delivery, at most 1,000"),
  oldestWaitingAt: nullable(time("Time of the oldest entry that waits"), "Null if none waits"),
  deliveries: array(
    object("An attempt to deliver an entry", {
      id: count("Identifier of the audit entry"),
      type: line(100, "Action of the entry"),
      at: time("When the attempt began"),
      ...responseOfReceiver,
    }),
    { json: "The last attempts, newest first" },
  ),
});
export type Webhook = Infer<typeof Webhook>;

export const WebhookTest = object("The response to a test event", {
  url: line(2_000, "URL of the receiver; a hash stands for its path and query"),
  isDelivered: boolean("Whether the status is 2xx"),
  ...responseOfReceiver,
  response: nullable(text(2_000, "First line of the response"), "Null if it is empty"),
});
