import {
  array,
  boolean,
  type Infer,
  integer,
  line,
  matching,
  nullable,
  object,
  oneOf,
  quantity,
  type Schema,
  text,
  updateSchema,
  valueSchema,
} from "../api/schema.ts";
import { ENVIRONMENTS } from "../domain/environments.ts";
import { MAX_OVERLAP_MS } from "../domain/key-fields.ts";
import { OPERATOR_NAME, OPERATOR_NAME_EXPECTED, OPERATOR_STATES, ROLES } from "../domain/operators.ts";
import { schemasOf } from "../domain/fields.ts";
import { OPERATOR_ORDER_FIELDS, Pet, PET_FIELDS } from "../domain/pets-and-orders.ts";
import { count, nextCursor, time } from "./key-resources.ts";
import { SESSION_HEADER } from "./operation-rows.ts";

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

export const PetPage = object("A page of pets, in ascending order of their identifiers", {
  items: array(Pet),
  nextCursor,
});

export const AdminOrder = object("An order with the API key that placed it", {
  ...schemasOf(OPERATOR_ORDER_FIELDS).required,
  petName: nullable(PET_FIELDS.name.schema, "Name of the pet"),
  keyName: nullable(line(100), "Name of the API key"),
});
export type AdminOrder = Infer<typeof AdminOrder>;

export const OrderPage = object("A page of orders, newest first", { items: array(AdminOrder), nextCursor });

const RoleSchema = oneOf(ROLES, "What the operator may do; each role may do what those before it may");
const operatorId = integer({
  min: 1,
  max: Number.MAX_SAFE_INTEGER,
  description: "Identifier of the operator",
});
const operatorName = line(64, { description: "Name of the operator", examples: ["ann"] });
const secretText = (description: string) =>
  matching(/^[\w-]{43}$/, "43 characters of base64url", description);

const subject = line(2_500, "Issuer and subject of an operator who signs in with a provider");

export const OperatorSchema = object(
  "A person or a program that operates the service",
  {
    id: operatorId,
    name: operatorName,
    role: RoleSchema,
    state: oneOf(OPERATOR_STATES, "Whether the token works"),
    hint: line(40, "Beginning and end of the token"),
    createdAt: time("When the operator was created"),
    tokenCreatedAt: time("When the token was made"),
    expiresAt: nullable(time("When the token expires; null for never")),
    overlapEndsAt: nullable(time("When the earlier tokens stop working; null unless a rotation overlaps")),
    lastUsedAt: nullable(time("When the operator was last there, to the hour"), "Null if never"),
    revokedAt: nullable(time("When the operator was revoked")),
  },
  {
    subject,
  },
);
export type OperatorView = Infer<typeof OperatorSchema>;

export const Operators = object("Operators, the oldest first", {
  items: array(OperatorSchema, { json: "Those that are not revoked, and the last 300 that are" }),
});

export const NewOperatorSchema = object(
  "An operator to create",
  {
    name: matching(OPERATOR_NAME, OPERATOR_NAME_EXPECTED, {
      description: "Name of the operator, which the audit trail has",
      examples: ["ann"],
    }),
    role: RoleSchema,
  },
  { expiresAt: nullable(time("When the token expires; null for never")) },
);

export const OperatorUpdate = updateSchema("The fields to change, at least one. Null removes the expiry.", {
  role: RoleSchema,
  expiresAt: nullable(time("When the token expires; null removes the expiry")),
});

export const OperatorRotation = object(
  "How to replace the token of an operator",
  {},
  {
    overlapSeconds: integer({
      min: 0,
      max: MAX_OVERLAP_MS / 1_000,
      default: 0,
      description: "How long the earlier tokens, and the other sessions, still work",
    }),
  },
);

export const OperatorWithToken = object("An operator and their new token, which is shown only this once", {
  operator: OperatorSchema,
  token: line(200, "Token of the operator"),
});
export type OperatorWithToken = Infer<typeof OperatorWithToken>;

const signInSecrets = {
  state: line(100, "Comes back in the response"),
  nonce: line(100, "Comes back in the ID token"),
  codeVerifier: line(200, "Proves to the provider that the page has begun the sign-in (PKCE)"),
};

export const NewSession = object(
  "What to sign in with: one of the three",
  {},
  {
    token: line(200, "Token of an operator"),
    code: line(
      200,
      "Code of the URL that `petstore admin-url` prints, or of `createSignInCode`. It works once, for five minutes.",
    ),
    credential: oneOf(["cookie", "token"], {
      default: "cookie",
      description: "What the session is for: a browser gets a cookie, a program a token",
    }),
    provider: object("The response of the provider, and what `beginSignIn` has responded", {
      response: line(3_000, "The query with which the provider has sent the browser back"),
      ...signInSecrets,
    }),
  },
);

export const BegunSignIn = object("A sign-in with the provider", {
  url: line(8_000, "Where to send the browser. The provider sends it back to `/` of the listener."),
  ...signInSecrets,
});

const session = {
  operator: object(
    "Who has signed in",
    { id: operatorId, name: operatorName, role: RoleSchema },
    { subject },
  ),
  environment,
  version,
};
const signedIn = boolean("Whether the request has a session or a token");

export const Session = object(
  "`operator`, `environment` and `version` are only there if `signedIn` is true.",
  { signedIn },
  { ...session, provider: line(300, "Host of the provider with which people can sign in, if there is one") },
);
export type Session = Infer<typeof Session>;

export const CreatedSession = object(
  "A new session",
  {
    signedIn,
    ...session,
    secret: secretText(
      `For the header \`${SESSION_HEADER}\`, without which the cookie is worth nothing: every listener on the host gets it`,
    ),
  },
  { token: line(200, "Token of the session, for a program: `Authorization: Bearer <token>`") },
);

export const CreatedCode = object("A code that signs in once", {
  code: line(200, "The code. It is shown only this once."),
  expiresAt: time("When the code stops working"),
});

const nameOrIndex = valueSchema(
  { kind: "other", expected: "a name or an index", json: { type: ["string", "integer"] } },
  (value) => (typeof value === "string" || typeof value === "number" ? value : undefined),
);
export const inputProblem = object("What is wrong with a value in the request", {
  path: array(nameOrIndex, {
    max: 10,
    json: "Where the value is: names and indexes, from the outside in; empty for the request body",
  }),
  message: text(10_000, "The end of a sentence that begins with the value, such as `must be true or false`"),
});

/** The body of an error. The console and the command line name their own fields and flags in the problems. */
export function apiErrorSchema(code: Schema<string>) {
  return object(
    {
      description: "An error. `code` is for programs, `message` for people: it names the field at fault.",
      additionalProperties: false,
    },
    {
      code,
      message: text(100_000),
      status: integer({ min: 400, max: 599, description: "The HTTP status code" }),
    },
    { problems: array(inputProblem, { json: "Each value that is not valid" }) },
  );
}
