import { DEFAULT_PLANS, type Environment, ENVIRONMENTS } from "../domain/api-keys.ts";
import {
  BAN_BOUNDS,
  DAY_MS,
  DEFAULT_BAN,
  DEFAULT_DECISION_TIMEOUT_MS,
  LONGEST_BAN_MS,
} from "../domain/rate-limit.ts";
import { DEFAULT_WEBHOOK_EVENTS } from "../domain/webhooks.ts";
import { ACCESS_LOG_FIELDS, LOG_FORMATS, LOG_LEVELS } from "../domain/logging.ts";
import { BASE_PATH } from "../domain/paths.ts";
import {
  baseUrl,
  host,
  hostname,
  listenAddress,
  network,
  origin,
  port,
  postgresUrl,
  securityContact,
  valkeyUrls,
  collectorUrl,
  webhookUrl,
} from "./address-types.ts";
import {
  type Flags,
  type Options,
  type Source,
  sourceOf,
  variableOf,
  type Variables,
} from "./parse-options.ts";
import { nearest, quoted, quotedPath, readTextFile, UsageError } from "./usage-error.ts";
import { clientId, clientSecret, issuerUrl, roleRules } from "./sign-in-types.ts";
import {
  adminToken,
  switchOption,
  choice,
  directory,
  duration,
  durationOrForever,
  file,
  formatValue,
  integerWithin,
  limitPair,
  list,
  size,
  type ValueType,
  ratio,
  webhookEvent,
  webhookSecrets,
} from "./value-types.ts";

export const DEFAULT_ADMIN_PORT: Readonly<Record<Environment, number>> = { production: 8090, staging: 8091 };

const anyNumberOf = <T>(type: ValueType<T>, help: string) =>
  ({ type: list(type), default: [], defaultText: "none", repeatable: true, help }) as const;

/** Makes an option for the name of a file of settings. */
function settingsFile<const F extends boolean>(help: string, { isFollowed }: { readonly isFollowed: F }) {
  return { type: file, isFollowed, help } as const;
}

export const JSON_OPTION = { json: switchOption("Print JSON") } as const;

/** The options for a token, with which a server creates an operator and a command calls a remote server. */
export const ADMIN_TOKEN_OPTIONS = {
  "admin-token-file": settingsFile("File with the token of the admin bootstrap, whom the server creates", {
    isFollowed: true,
  }),
  "admin-token": {
    type: adminToken,
    isVariableOnly: true,
    fileOption: "admin-token-file",
    help: "That token itself",
  },
} as const satisfies Options;

/** The options of the listener for operators. */
export const ADMIN_OPTIONS = {
  "admin-address": {
    type: listenAddress,
    defaultText: `127.0.0.1:${DEFAULT_ADMIN_PORT.production}, or ${DEFAULT_ADMIN_PORT.staging} in staging, or the next free port`,
    help: "Address of the listener with the console, admin API, health checks and metrics; off for none",
  },
  "admin-hostname": anyNumberOf(
    hostname,
    "Names for that listener in browsers, besides IP addresses and localhost",
  ),
  ...ADMIN_TOKEN_OPTIONS,
  "metrics-token-file": settingsFile(
    "As --admin-token-file, of the operator metrics, who may only read /metrics",
    { isFollowed: true },
  ),
  "metrics-public": switchOption("Respond to /metrics on that listener without the token"),
  "audit-retention": {
    type: durationOrForever({ min: LONGEST_BAN_MS, max: 3_650 * DAY_MS }),
    default: 400 * DAY_MS,
    help: "Age at which entries of the audit trail are deleted",
  },
} as const satisfies Options;

/** The provider with which people sign in. */
export const OIDC_OPTIONS = {
  "oidc-issuer": {
    type: issuerUrl,
    isDestination: true,
    defaultText: "none",
    help: "Issuer of the company's sign-in (OpenID Connect), with which people sign in to the console",
  },
  "oidc-client-id": { type: clientId, help: "Identifier of this client there" },
  "oidc-client-secret-file": settingsFile("File with the secret of this client there", { isFollowed: true }),
  "oidc-client-secret": {
    type: clientSecret,
    isVariableOnly: true,
    fileOption: "oidc-client-secret-file",
    help: "That secret itself",
  },
  "oidc-role": {
    type: roleRules,
    repeatable: true,
    help: "Role of people with a value in a claim; the highest that matches",
  },
} as const satisfies Options;

/** Where audit entries are delivered. */
export const WEBHOOK_OPTIONS = {
  "webhook-url": {
    type: webhookUrl,
    isDestination: true,
    defaultText: "none",
    help: "URL to which a server sends audit entries, each as a signed POST",
  },
  "webhook-secret-file": settingsFile(
    "File with the secret of the signatures, whsec_ and base64, or two on a line each",
    { isFollowed: true },
  ),
  "webhook-secret": {
    type: webhookSecrets,
    isVariableOnly: true,
    repeatable: true,
    fileOption: "webhook-secret-file",
    help: "That secret itself",
  },
  "webhook-events": {
    type: list(webhookEvent),
    default: DEFAULT_WEBHOOK_EVENTS,
    repeatable: true,
    help: "Actions to send, such as key.banned, operator.* or *",
  },
} as const satisfies Options;

/** Where spans of requests are exported. */
export const TRACING_OPTIONS = {
  "otlp-url": {
    type: collectorUrl,
    isDestination: true,
    defaultText: "none",
    help: "URL of an OpenTelemetry collector, for spans of requests as OTLP/HTTP in JSON",
  },
  "otlp-sample": {
    type: ratio,
    default: 0.01,
    help: "Share of requests to trace; those with a traceparent are traced as it says",
  },
} as const satisfies Options;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** The default ports differ, so that both environments can run on one machine. */
export const DEFAULT_PORT: Readonly<Record<Environment, number>> = { production: 8080, staging: 8081 };

/** The options of every command that reads or writes data. */
export const STORAGE_OPTIONS = {
  env: {
    type: choice("ENV", ENVIRONMENTS),
    default: "production",
    help: "Environment; each has its own data, keys and port",
  },
  "env-file": settingsFile(
    "File of environment variables, NAME=value on each line; the environment overrides them",
    { isFollowed: false },
  ),
  data: {
    type: directory,
    default: "./data",
    help: "Directory of the SQLite databases; created if missing, readable by its owner only",
  },
  "database-url-file": settingsFile("File that contains --database-url, hidden from process lists", {
    isFollowed: true,
  }),
  "database-url": {
    type: postgresUrl,
    isDestination: true,
    defaultText: "SQLite in --data",
    fileOption: "database-url-file",
    help: "PostgreSQL database that servers share; of several hosts, postgres://a,b/…, the primary is used",
  },
  "limits-url-file": settingsFile("File that contains --limits-url, one on each line for a cluster", {
    isFollowed: true,
  }),
  "limits-url": {
    type: valkeyUrls,
    isDestination: true,
    defaultText: "in the database",
    repeatable: true,
    fileOption: "limits-url-file",
    help: "Valkey or Redis that counts for the rate limits, or the nodes of a cluster",
  },
  "limits-ca": {
    ...settingsFile("Certificates (PEM) of the authorities to trust for rediss:// URLs", {
      isFollowed: true,
    }),
    defaultText: "the public authorities",
  },
} as const satisfies Options;

/** An option of one start. It is no setting of a server, because it must not stay in effect. */
export const ACCEPT_PRIMARY_OPTION = {
  "accept-primary": switchOption(
    "Use the PostgreSQL server that accepts writes now, even if another one was promoted",
  ),
} as const satisfies Options;

/** Another option of one start. */
export const NEW_DATABASE_OPTION = {
  "new-database": switchOption(
    "Begin with an empty database in --data although other files show that it had one",
  ),
} as const satisfies Options;

/** The options of every command that opens the database. */
export const DATABASE_OPTIONS = { ...STORAGE_OPTIONS, ...ACCEPT_PRIMARY_OPTION } as const satisfies Options;

export const ADDRESS_OPTIONS = {
  host: {
    type: host,
    default: "127.0.0.1",
    help: "Address to listen on; 0.0.0.0 or :: for all addresses of the machine",
  },
  port: {
    type: port,
    defaultText: `${DEFAULT_PORT.production}, or ${DEFAULT_PORT.staging} in staging`,
    help: "Port to listen on; 0 for any free port",
  },
  "tls-cert": {
    ...settingsFile("Certificate (PEM, with its chain) to serve HTTPS, with --tls-key", { isFollowed: true }),
    defaultText: "plain HTTP",
  },
  "tls-key": settingsFile("Private key (PEM) of --tls-cert", { isFollowed: true }),
  "public-url": {
    type: baseUrl,
    defaultText: "the address listened on",
    help: `URL of the API as clients see it; ${BASE_PATH} is added if missing`,
  },
} as const satisfies Options;

/** Makes an option whose value is stored in the database, for all servers. */
function shared<T>(type: ValueType<T>, first: T, help: string) {
  return { type, defaultText: `stored, or ${formatValue(type, first)}`, help } as const;
}

/**
 * A server that starts with one of them sets it for all servers. Enterprise has no option here: each Enterprise key has
 * its own limits.
 */
export const SHARED_OPTIONS = {
  "free-limits": shared(
    limitPair,
    DEFAULT_PLANS.free,
    "Rate limits of the Free plan, for all servers: requests per minute and per day",
  ),
  "pro-limits": shared(limitPair, DEFAULT_PLANS.pro, "Rate limits of the Pro plan"),
  "business-limits": shared(limitPair, DEFAULT_PLANS.business, "Rate limits of the Business plan"),
  "anonymous-limits": shared(
    limitPair,
    DEFAULT_PLANS.anonymous,
    "Rate limits of an address without a valid key, and of its pages, on each server",
  ),
  "ban-strikes": shared(
    integerWithin(BAN_BOUNDS.strikes),
    DEFAULT_BAN.strikes,
    "Strikes that ban a key: requests rejected after the grace period, at most one for each",
  ),
  "ban-grace": shared(
    duration(BAN_BOUNDS.graceMs),
    DEFAULT_BAN.graceMs,
    "Grace period after the first 429 and after each strike, in which no request is a strike",
  ),
  "ban-length": shared(
    duration(BAN_BOUNDS.lengthMs),
    DEFAULT_BAN.lengthMs,
    "Duration of a first ban; each further ban within 24 hours is twice as long",
  ),
  "ban-max-length": shared(
    duration(BAN_BOUNDS.maxLengthMs),
    DEFAULT_BAN.maxLengthMs,
    "Maximum duration of a ban; a value below --ban-length means --ban-length",
  ),
} as const satisfies Options;

/** The settings of a server, which `petstore serve` accepts. */
export const SETTINGS = {
  ...STORAGE_OPTIONS,
  "limits-timeout": {
    type: duration({ min: 5, max: SECOND }),
    default: DEFAULT_DECISION_TIMEOUT_MS,
    help: "How long requests wait for Valkey; then PostgreSQL counts",
  },
  ...ADDRESS_OPTIONS,
  ...ADMIN_OPTIONS,
  ...OIDC_OPTIONS,
  ...WEBHOOK_OPTIONS,
  "other-environment-url": {
    type: baseUrl,
    defaultText: "none",
    help: "URL of the API in the other environment, for the documentation and the OpenAPI document",
  },
  "security-contact": anyNumberOf(
    securityContact,
    "Where to report vulnerabilities, for /.well-known/security.txt",
  ),
  "trust-proxy": anyNumberOf(network, "Proxies whose X-Forwarded-For header is trusted"),
  "cors-origin": anyNumberOf(
    origin,
    "Origins of web pages whose scripts may use the API from a browser (CORS)",
  ),
  "max-connections": {
    type: integerWithin({ min: 1, max: 1_000_000 }),
    defaultText: "20000, or what the limit of open files allows",
    help: "Maximum number of connections; at the maximum, idle ones are closed",
  },
  "max-connections-per-address": {
    type: integerWithin({ min: 0, max: 1_000_000 }),
    default: 256,
    help: "Maximum from one address (IPv6: one /64 network) outside --trust-proxy; 0 for no maximum",
  },
  "no-first-key": switchOption(
    "Create no API key on a new database, for a server whose files nobody can read",
  ),
  "drain-delay": {
    type: duration({ min: 0, max: 5 * MINUTE }),
    default: 0,
    help: "Time to keep serving after a stop signal, while /healthz responds 503",
  },
  "log-format": {
    type: choice("FORMAT", LOG_FORMATS),
    defaultText: "text on a terminal, otherwise json",
    help: "Format of the log on standard error",
  },
  "log-level": {
    type: choice("LEVEL", LOG_LEVELS),
    default: "info",
    help: "Least important level that is logged",
  },
  "access-log": {
    type: file,
    defaultText: "none",
    help: "File to which a line is appended for each request; - for standard output",
  },
  "access-log-omit": anyNumberOf(choice("FIELD", ACCESS_LOG_FIELDS), "Fields to omit from it"),
  "request-log": {
    type: size({ min: 2 ** 20, max: 2 ** 30 }),
    default: 32 * 2 ** 20,
    help: "Memory for the last requests, which petstore requests shows; 0 for none",
  },
  ...TRACING_OPTIONS,
  ...SHARED_OPTIONS,
} as const satisfies Options;

/** The settings in the groups of the help. Settings without a group concern the server as a whole. */
export const SETTING_GROUPS: Readonly<Record<string, Options>> = {
  Data: DATABASE_OPTIONS,
  Address: ADDRESS_OPTIONS,
  Operators: { ...ADMIN_OPTIONS, ...OIDC_OPTIONS, ...WEBHOOK_OPTIONS },
  "Rate limits and bans": { ...SHARED_OPTIONS, "limits-timeout": SETTINGS["limits-timeout"] },
};

interface CheckedVariables {
  /** The variables of the process, and those of --env-file that the process does not have. */
  readonly variables: Variables;
  /** The names of the variables from the file. */
  readonly envFileVariables: ReadonlySet<string>;
  readonly warnings: readonly string[];
}

/**
 * Adds the variables of --env-file, and rejects every PETSTORE_ variable that is no setting of a server: one that stays
 * in a file must not affect other commands. `commandFlags` are the flags of all commands.
 */
export function checkVariables(
  commandFlags: readonly string[],
  flags: Flags,
  variables: Variables,
): CheckedVariables {
  const own = withoutServiceLinks(variables);
  const source = sourceOf("env-file", flags, own);
  const fileVariables = source === undefined ? {} : readEnvFile(source);
  rejectUnknownVariable(commandFlags, fileVariables, ` in ${quotedPath(source?.texts[0] ?? "")}`);
  rejectUnknownVariable(commandFlags, own);
  const isPortDropped = variables["PETSTORE_PORT"] && own["PETSTORE_PORT"] === undefined;
  return {
    variables: { ...fileVariables, ...own },
    envFileVariables: new Set(Object.keys(fileVariables).filter((name) => own[name] === undefined)),
    warnings: isPortDropped ? [PORT_WARNING] : [],
  };
}

const COMMENT_OR_BLANK = /^\s*(?:[#;].*)?$/;
/** Matches a line that the next one continues: it ends in an odd number of backslashes. */
const CONTINUED = /(?<!\\)(?:\\\\)*\\$/;
const ASSIGNMENT =
  /^\s*(?:export\s+)?(?<name>[A-Za-z_]\w*)=\s*(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<bare>.*?))\s*$/;

/**
 * Reads a file in the format of systemd's EnvironmentFile: `NAME=value` lines, comments on lines of their own, and a
 * backslash at the end of a line that the next one continues. Quotes around a whole value are removed. Nothing else in
 * a value is special, so a password can contain # and $.
 */
function readEnvFile({ name: option, texts: [path = ""] }: Source): Variables {
  const variables: Record<string, string> = {};
  const lines = readTextFile(option, path).split(/\r?\n/);
  for (let index = 0; index < lines.length; index++) {
    const first = index + 1;
    let line = lines[index] ?? "";
    if (COMMENT_OR_BLANK.test(line)) continue;
    while (CONTINUED.test(line) && index + 1 < lines.length) line = line.slice(0, -1) + lines[++index];
    const { name, double, single, bare } = ASSIGNMENT.exec(line)?.groups ?? {};
    if (name === undefined) throw new UsageError(`line ${first} of ${quotedPath(path)} is not NAME=value`);
    variables[name] = double ?? single ?? bare ?? "";
  }
  return variables;
}

/** Matches the variables that Kubernetes sets in every pod for a service whose name begins with "petstore". */
const SERVICE_LINK =
  /^PETSTORE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const SERVICE_LINK_PORT = /^PETSTORE_(?:\w+_)?PORT$/;
const SERVICE_LINK_URL = /^(?:tcp|udp|sctp):\/\//;

const PORT_WARNING =
  "PETSTORE_PORT is ignored: Kubernetes sets it for a service named petstore; set enableServiceLinks: false, or use --port";

/** Removes those variables, and empty ones, which count as not set. */
function withoutServiceLinks(variables: Variables): Variables {
  const entries = Object.entries(variables).filter(([name, value = ""]) => {
    if (value === "" || SERVICE_LINK.test(name)) return false;
    return !(SERVICE_LINK_PORT.test(name) && SERVICE_LINK_URL.test(value));
  });
  return Object.fromEntries(entries);
}

/** The variables by which scripts select a remote server, and the one that has the API key of a client. */
const ELSEWHERE_VARIABLES = ["PETSTORE_SERVER", "PETSTORE_TOKEN", "PETSTORE_PLAIN_HTTP", "PETSTORE_KEY"];

/** Rejects unknown variables. PETSTORE_TEST_ variables are for the tests of this project. */
function rejectUnknownVariable(commandFlags: readonly string[], variables: Variables, location = ""): void {
  const settings = Object.keys(SETTINGS);
  const known = new Set([...settings.map(variableOf), ...ELSEWHERE_VARIABLES]);
  const unknown = Object.keys(variables).find((name) => /^PETSTORE_(?!TEST_)/.test(name) && !known.has(name));
  if (unknown === undefined) return;
  const flag = unknown.replace("PETSTORE_", "").toLowerCase().replaceAll("_", "-");
  if (commandFlags.includes(flag))
    throw new UsageError(`${unknown}${location} is not a setting of a server; use --${flag}`);
  const near = nearest(flag, settings);
  const suggestion = near ? `did you mean ${variableOf(near)}?` : "see petstore serve --help";
  throw new UsageError(`unknown variable ${quoted(unknown)}${location}; ${suggestion}`);
}
