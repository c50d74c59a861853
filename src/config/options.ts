import { typedDuration } from "../text/durations.ts";
import { DAY_MS, MINUTE_MS } from "../text/time-units.ts";
import { LONGEST_BAN_MS } from "../domain/ban-rules.ts";
import { type Environment, ENVIRONMENTS } from "../domain/environments.ts";
import { DEFAULT_WEBHOOK_EVENTS } from "../domain/webhooks.ts";
import { ACCESS_LOG_FIELDS, LOG_FORMATS, LOG_LEVELS } from "../domain/logging.ts";
import { BASE_PATH } from "../domain/paths.ts";
import { DEFAULT_AUDIT_RETENTION_MS } from "./audit-retention.ts";
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
  collectorUrl,
  webhookUrl,
} from "./address-types.ts";
import type { Options, SettingRows } from "./parse-options.ts";
import { clientId, clientSecret, issuerUrl, roleRules } from "./sign-in-types.ts";
import {
  adminToken,
  switchOption,
  choice,
  directory,
  duration,
  durationOrForever,
  file,
  integerWithin,
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
  return { type: file, concerns: "machine", isFollowed, help } as const;
}

export const JSON_OPTION = { json: switchOption("Print JSON") } as const;

/** The options for a token, with which a server creates an operator and a command calls a remote server. */
export const ADMIN_TOKEN_OPTIONS = {
  "admin-token-file": settingsFile("File with the token of the admin bootstrap, whom the server creates", {
    isFollowed: true,
  }),
  "admin-token": {
    concerns: "machine",
    type: adminToken,
    isVariableOnly: true,
    fileOption: "admin-token-file",
    help: "That token itself",
  },
} as const satisfies SettingRows;

/** The options of the listener for operators. */
export const ADMIN_OPTIONS = {
  "admin-address": {
    concerns: "machine",
    type: listenAddress,
    defaultText: `127.0.0.1:${DEFAULT_ADMIN_PORT.production}, or ${DEFAULT_ADMIN_PORT.staging} in staging, or the next free port`,
    help: "Address of the listener with the console, admin API, health checks and metrics; off for none",
  },
  "admin-hostname": {
    concerns: "machine",
    ...anyNumberOf(hostname, "Names for that listener in browsers, besides IP addresses and localhost"),
  },
  ...ADMIN_TOKEN_OPTIONS,
  "metrics-token-file": settingsFile(
    "As --admin-token-file, of the operator metrics, who may only read /metrics",
    { isFollowed: true },
  ),
  "metrics-public": {
    concerns: "service",
    ...switchOption("Respond to /metrics on that listener without the token"),
  },
  "audit-retention": {
    concerns: "service",
    // Where PostgreSQL counts, the banned keys are found by these entries.
    type: durationOrForever({ min: LONGEST_BAN_MS, max: 3_650 * DAY_MS }),
    // Without the setting a server looks for what an earlier release has stored.
    defaultText: typedDuration(DEFAULT_AUDIT_RETENTION_MS),
    help: "Age at which entries of the audit trail are deleted",
  },
} as const satisfies SettingRows;

/** The provider with which people sign in. */
export const OIDC_OPTIONS = {
  "oidc-issuer": {
    concerns: "service",
    type: issuerUrl,
    isDestination: true,
    defaultText: "none",
    help: "Issuer of the company's sign-in (OpenID Connect), with which people sign in to the console",
  },
  "oidc-client-id": {
    concerns: "service",
    type: clientId,
    help: "Identifier of this client there",
  },
  "oidc-client-secret-file": settingsFile("File with the secret of this client there", { isFollowed: true }),
  "oidc-client-secret": {
    concerns: "machine",
    type: clientSecret,
    isVariableOnly: true,
    fileOption: "oidc-client-secret-file",
    help: "That secret itself",
  },
  "oidc-role": {
    concerns: "service",
    type: roleRules,
    repeatable: true,
    help: "Role of people with a value in a claim; the highest that matches",
  },
} as const satisfies SettingRows;

/** Where audit entries are delivered. */
export const WEBHOOK_OPTIONS = {
  "webhook-url": {
    concerns: "service",
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
    concerns: "machine",
    type: webhookSecrets,
    isVariableOnly: true,
    repeatable: true,
    fileOption: "webhook-secret-file",
    help: "That secret itself",
  },
  "webhook-events": {
    concerns: "service",
    type: list(webhookEvent),
    default: DEFAULT_WEBHOOK_EVENTS,
    repeatable: true,
    help: "Actions to send, such as key.banned, operator.* or *",
  },
} as const satisfies SettingRows;

/** Where spans of requests are exported. */
export const TRACING_OPTIONS = {
  "otlp-url": {
    concerns: "machine",
    type: collectorUrl,
    isDestination: true,
    defaultText: "none",
    help: "URL of an OpenTelemetry collector, for spans of requests as OTLP/HTTP in JSON",
  },
  "otlp-sample": {
    concerns: "service",
    type: ratio,
    default: 0.01,
    help: "Share of requests to trace; those with a traceparent are traced as it says",
  },
} as const satisfies SettingRows;

/** The default ports differ, so that both environments can run on one machine. */
export const DEFAULT_PORT: Readonly<Record<Environment, number>> = { production: 8080, staging: 8081 };

/** The options of every command that reads or writes data. */
export const STORAGE_OPTIONS = {
  env: {
    concerns: "machine",
    type: choice("ENV", ENVIRONMENTS),
    default: "production",
    help: "Environment; each has its own data, keys and port",
  },
  "env-file": settingsFile(
    "File of environment variables, NAME=value on each line; the environment overrides them",
    { isFollowed: false },
  ),
  data: {
    concerns: "machine",
    type: directory,
    default: "./data",
    help: "Directory of the SQLite databases, readable by its owner only; a server makes it",
  },
  "database-url-file": settingsFile("File that contains --database-url, hidden from process lists", {
    isFollowed: true,
  }),
  "database-url": {
    concerns: "machine",
    type: postgresUrl,
    isDestination: true,
    defaultText: "SQLite in --data",
    fileOption: "database-url-file",
    help: "PostgreSQL database that servers share; of several hosts, postgres://a,b/…, the primary is used",
  },
} as const satisfies SettingRows;

/** An option of one start. It is no setting of a server, because it must not stay in effect. */
export const ACCEPT_PRIMARY_OPTION = {
  "accept-primary": switchOption(
    "Use the PostgreSQL server that accepts writes now, even if another one was promoted",
  ),
} as const satisfies Options;

/** An option of one start, as well: it must not stay in effect. */
export const NEW_DATABASE_OPTION = {
  "new-database": switchOption(
    "Begin with an empty database in --data although other files show that it had one",
  ),
} as const satisfies Options;

/** The options of every command that opens the database. */
export const DATABASE_OPTIONS = { ...STORAGE_OPTIONS, ...ACCEPT_PRIMARY_OPTION } as const satisfies Options;

export const ADDRESS_OPTIONS = {
  host: {
    concerns: "machine",
    type: host,
    default: "127.0.0.1",
    help: "Address to listen on; 0.0.0.0 or :: for all addresses of the machine",
  },
  port: {
    concerns: "machine",
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
    concerns: "clients",
    type: baseUrl,
    defaultText: "the address listened on",
    help: `URL of the API as clients see it; ${BASE_PATH} is added if missing`,
  },
} as const satisfies SettingRows;

/** The settings of a server, which `petstore serve` accepts. */
export const SETTINGS = {
  ...STORAGE_OPTIONS,
  ...ADDRESS_OPTIONS,
  ...ADMIN_OPTIONS,
  ...OIDC_OPTIONS,
  ...WEBHOOK_OPTIONS,
  "other-environment-url": {
    concerns: "clients",
    type: baseUrl,
    defaultText: "none",
    help: "URL of the API in the other environment, for the documentation and the OpenAPI document",
  },
  "security-contact": {
    concerns: "machine",
    ...anyNumberOf(securityContact, "Where to report vulnerabilities, for /.well-known/security.txt"),
  },
  "trust-proxy": {
    concerns: "service",
    ...anyNumberOf(network, "Proxies whose X-Forwarded-For header is trusted"),
  },
  "cors-origin": {
    concerns: "service",
    ...anyNumberOf(origin, "Origins of web pages whose scripts may use the API from a browser (CORS)"),
  },
  "max-connections": {
    concerns: "machine",
    type: integerWithin({ min: 1, max: 1_000_000 }),
    defaultText: "20000, or what the limit of open files allows",
    help: "Maximum number of connections; at the maximum, idle ones are closed",
  },
  "max-connections-per-address": {
    concerns: "clients",
    type: integerWithin({ min: 0, max: 1_000_000 }),
    default: 256,
    help: "Maximum from one address (IPv6: one /64 network) outside --trust-proxy; 0 for no maximum",
  },
  "no-first-key": {
    concerns: "machine",
    ...switchOption("Create no API key on a new database, for a server whose files nobody can read"),
  },
  "drain-delay": {
    concerns: "service",
    type: duration({ min: 0, max: 5 * MINUTE_MS }),
    default: 0,
    help: "Time to keep serving after a stop signal, while /healthz responds 503",
  },
  "log-format": {
    concerns: "machine",
    type: choice("FORMAT", LOG_FORMATS),
    defaultText: "text on a terminal, otherwise json",
    help: "Format of the log on standard error",
  },
  "log-level": {
    concerns: "machine",
    type: choice("LEVEL", LOG_LEVELS),
    default: "info",
    help: "Least important level that is logged",
  },
  "access-log": {
    concerns: "machine",
    type: file,
    defaultText: "none",
    help: "File to which a line is appended for each request; - for standard output",
  },
  "access-log-omit": {
    concerns: "service",
    ...anyNumberOf(choice("FIELD", ACCESS_LOG_FIELDS), "Fields to omit from it"),
  },
  "request-log": {
    concerns: "machine",
    type: size({ min: 2 ** 20, max: 2 ** 30 }),
    default: 32 * 2 ** 20,
    help: "Memory for the last requests, which petstore requests shows; 0 for none",
  },
  ...TRACING_OPTIONS,
} as const satisfies SettingRows;

/** The settings in the groups of the help. Settings without a group concern the server as a whole. */
export const SETTING_GROUPS: Readonly<Record<string, Options>> = {
  Data: DATABASE_OPTIONS,
  Address: ADDRESS_OPTIONS,
  Operators: { ...ADMIN_OPTIONS, ...OIDC_OPTIONS, ...WEBHOOK_OPTIONS },
};
