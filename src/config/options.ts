import { BASE_PATH } from "../contract/operations.ts";
import { type Environment, ENVIRONMENTS } from "../domain/api-keys.ts";
import { DEFAULT_PLANS } from "../domain/plans.ts";
import { DEFAULT_BAN, DEFAULT_DECISION_TIMEOUT_MS, LONGEST_BAN_MS } from "../domain/rate-limit.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../log-events.ts";
import { baseUrl, host, network, origin, port, postgresUrl, valkeyUrl } from "./address-types.ts";
import { ADMIN_OPTIONS } from "./admin-options.ts";
import { BACKUP_OPTIONS, COPY_OPTIONS, RESTORE_OPTIONS } from "./backup-options.ts";
import { AUDIT_OPTIONS, USAGE_OPTIONS } from "./history-options.ts";
import { KEY_FILTER_OPTIONS, KEY_OPTIONS } from "./key-options.ts";
import type { Options } from "./parse-options.ts";
import { ORDER_LIST_OPTIONS, PET_LIST_OPTIONS, PET_UPDATE_OPTIONS } from "./pet-options.ts";
import { EXPORT_OPTIONS, IMPORT_OPTIONS } from "./transfer-options.ts";
import { boolean, choice, directory, duration, file, integer, limitPair, list } from "./value-types.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Both environments run on one machine side by side. */
export const DEFAULT_PORT: Readonly<Record<Environment, number>> = { production: 8080, staging: 8081 };

/** For every command that reads or writes data. */
export const STORAGE_OPTIONS = {
  env: {
    type: choice("ENV", ENVIRONMENTS),
    default: "production",
    help: "Environment; each has its own data, keys and port",
  },
  "env-file": {
    type: file,
    help: "File of environment variables, NAME=value on each line; the environment itself overrides them",
  },
  data: {
    type: directory,
    default: "./data",
    help: "Directory of the SQLite databases; created if missing, readable by its owner only",
  },
  "database-url-file": {
    type: file,
    help: "File that contains --database-url, whose password other users could read in a list of processes",
  },
  "database-url": {
    type: postgresUrl,
    defaultText: "SQLite in --data",
    fileOption: "database-url-file",
    help: "PostgreSQL database for pets, orders and keys, shared by any number of servers",
  },
  "limits-url-file": {
    type: file,
    help: "File that contains --limits-url; for a cluster, one URL on each line",
  },
  "limits-url": {
    type: list(valkeyUrl),
    defaultText: "in the server process",
    repeatable: true,
    fileOption: "limits-url-file",
    help: "Valkey or Redis for the rate limits of keys, shared by any number of servers; repeat it for the nodes of a cluster",
  },
  "limits-ca": {
    type: file,
    defaultText: "the public authorities",
    help: "Certificates (PEM) of the authorities to trust for rediss:// URLs",
  },
} as const satisfies Options;

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
    type: file,
    defaultText: "plain HTTP",
    help: "Certificate (PEM, with its chain) to serve HTTPS; requires --tls-key",
  },
  "tls-key": { type: file, help: "Private key (PEM) of --tls-cert" },
  "public-url": {
    type: baseUrl,
    defaultText: "the address listened on",
    help: `URL of the API as clients see it; ${BASE_PATH} is added if missing`,
  },
} as const satisfies Options;

/** Enterprise has no option here: each Enterprise key has its own limits. */
export const PLAN_OPTIONS = {
  "free-limits": {
    type: limitPair,
    default: DEFAULT_PLANS.free,
    help: "Rate limits of the Free plan: requests per minute and per day",
  },
  "pro-limits": { type: limitPair, default: DEFAULT_PLANS.pro, help: "Rate limits of the Pro plan" },
  "business-limits": {
    type: limitPair,
    default: DEFAULT_PLANS.business,
    help: "Rate limits of the Business plan",
  },
} as const satisfies Options;

export const BAN_OPTIONS = {
  "ban-strikes": {
    type: integer({ min: 1, max: 1_000_000 }),
    default: DEFAULT_BAN.strikes,
    help: "Strikes that ban a key; a request rejected after the grace period is a strike",
  },
  "ban-grace": {
    type: duration({ min: 0, max: HOUR }),
    default: DEFAULT_BAN.graceMs,
    help: "Grace period after the first 429",
  },
  "ban-length": {
    type: duration({ min: SECOND, max: LONGEST_BAN_MS }),
    default: DEFAULT_BAN.lengthMs,
    help: "Duration of a first ban; each further ban within 24 hours of the last one is twice as long as that one",
  },
  "ban-max-length": {
    type: duration({ min: SECOND, max: LONGEST_BAN_MS }),
    default: DEFAULT_BAN.maxLengthMs,
    help: "Maximum duration of a ban; a value below --ban-length means --ban-length",
  },
} as const satisfies Options;

/** The settings of a server: `petstore serve`. */
export const SETTINGS = {
  ...STORAGE_OPTIONS,
  "limits-timeout": {
    type: duration({ min: 5, max: SECOND }),
    default: DEFAULT_DECISION_TIMEOUT_MS,
    help: "Timeout of a request to Valkey; after it, the server counts in its own process until Valkey responds",
  },
  ...ADDRESS_OPTIONS,
  ...ADMIN_OPTIONS,
  "twin-url": {
    type: baseUrl,
    defaultText: "its default port on this machine",
    help: "URL of the API in the other environment, for the documentation and the OpenAPI document",
  },
  "trust-proxy": {
    type: list(network),
    default: [],
    defaultText: "none",
    repeatable: true,
    help: "Proxies whose X-Forwarded-For header is trusted; can be repeated",
  },
  "cors-origin": {
    type: list(origin),
    default: [],
    defaultText: "none",
    repeatable: true,
    help: "Origins of web pages whose scripts may use the API from a browser (CORS); can be repeated",
  },
  "max-connections": {
    type: integer({ min: 1, max: 1_000_000 }),
    defaultText: "20000, or what the limit of open files allows",
    help: "Maximum number of connections; at the maximum, the server closes idle ones",
  },
  "max-connections-per-address": {
    type: integer({ min: 0, max: 1_000_000 }),
    default: 256,
    help: "Maximum number of connections from one address (IPv6: one /64 network) that is not in --trust-proxy; 0 for no maximum",
  },
  "drain-delay": {
    type: duration({ min: 0, max: 5 * MINUTE }),
    default: 0,
    help: "Time to keep serving after a stop signal, while /healthz responds 503 to load balancers",
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
  ...PLAN_OPTIONS,
  "anonymous-limits": {
    type: limitPair,
    default: DEFAULT_PLANS.anonymous,
    help: "Rate limits of a client address that sends no valid key, on each server",
  },
  ...BAN_OPTIONS,
} as const satisfies Options;

/** What a server saves with its data when it starts, beside its URL. */
export const SAVED_OPTIONS = {
  ...PLAN_OPTIONS,
  "anonymous-limits": SETTINGS["anonymous-limits"],
  ...BAN_OPTIONS,
} as const satisfies Options;

/** Further options of `petstore openapi`. */
export const OPENAPI_OPTIONS = {
  postman: { type: boolean, default: false, help: "Print a Postman collection instead of the document" },
} as const satisfies Options;

/**
 * Every option. A flag means the same in every command that has it, but for the name and the status, which are those of
 * a key, a pet or an order.
 */
export const OPTIONS = {
  ...ORDER_LIST_OPTIONS,
  ...PET_LIST_OPTIONS,
  ...PET_UPDATE_OPTIONS,
  ...SETTINGS,
  ...KEY_OPTIONS,
  ...KEY_FILTER_OPTIONS,
  ...USAGE_OPTIONS,
  ...AUDIT_OPTIONS,
  ...OPENAPI_OPTIONS,
  ...IMPORT_OPTIONS,
  ...EXPORT_OPTIONS,
  ...BACKUP_OPTIONS,
  ...RESTORE_OPTIONS,
  ...COPY_OPTIONS,
} as const;
