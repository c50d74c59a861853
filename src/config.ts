import { baseUrl, host, listenUrl, port } from "./config/addresses.ts";
import { postgresUrl, valkeyUrl } from "./config/engines.ts";
import { choice, duration, folder, integer, list, text, toggle } from "./config/kinds.ts";
import { limitPair, requestCount } from "./config/limits.ts";
import { network } from "./config/networks.ts";
import { markdownTable, type Option, type ValuesOf, type Variables } from "./config/option.ts";
import { pathsOf, type Place, whereIs } from "./config/place.ts";
import { type Environment, ENVIRONMENTS } from "./domain/api-keys.ts";
import { type BanRules, DEFAULT_BAN } from "./domain/rate-limit.ts";
import { DEFAULT_PLANS, PLANS, type Plans } from "./domain/plans.ts";

/** Everything the service can be told, parsed once. */
export interface Config extends Place {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** How long Valkey may keep a request waiting in silence; undefined means as long as the rateLimiter thinks right. */
  readonly limitsTimeoutMs?: number;
  /** Base address as clients see it, `/v1` included; undefined means the address listened on. */
  readonly publicUrl?: string;
  /** Base address of the other environment, for the OpenAPI document. */
  readonly twinUrl?: string;
  /** Networks whose `X-Forwarded-For` is believed, as CIDR. */
  readonly trustedProxies: readonly string[];
  /** How long to serve on after a stop was asked for, so that load balancers hear of it first. */
  readonly drainDelayMs: number;
  readonly plans: Plans;
  readonly ban: BanRules;
}

export { listenUrl, pathsOf, type Place, whereIs };

/** Both environments run on one machine side by side. */
const DEFAULT_PORT: Record<Environment, number> = { production: 8080, staging: 8081 };

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

/** Where an environment keeps its data: what every command that touches data takes. */
export const PLACE = {
  env: {
    kind: choice("ENV", ENVIRONMENTS),
    default: "production",
    help: "Which environment: each has its own data, keys and address",
  },
  data: {
    kind: folder,
    default: "./data",
    help: "Folder of the databases; made when missing, for its owner alone",
  },
  "database-url": {
    kind: postgresUrl,
    otherwise: "SQLite in --data",
    help: "PostgreSQL to keep pets, orders and keys in, shared by any number of servers",
  },
  "limits-url": {
    kind: list(valkeyUrl),
    otherwise: "counted in process",
    repeatable: true,
    help: "Valkey or Redis to count the limits in, shared by any number of servers; several for a cluster",
  },
} as const satisfies Record<string, Option>;

export const PATIENCE = {
  "limits-timeout": {
    kind: duration({ min: 5, max: SECOND }),
    otherwise: "25ms",
    help: "Silence of --limits-url after which requests are counted in process until it is back",
  },
} as const satisfies Record<string, Option>;

export const ADDRESS = {
  host: {
    kind: host,
    default: "127.0.0.1",
    help: "Address to listen on; 0.0.0.0 or :: for all of the machine's",
  },
  port: {
    kind: port,
    otherwise: `${DEFAULT_PORT.production}, or ${DEFAULT_PORT.staging} in staging`,
    help: "Port to listen on; 0 picks a free one",
  },
  "public-url": {
    kind: baseUrl,
    otherwise: "the address listened on",
    help: "Base address as clients see it; /v1 is added when missing",
  },
} as const satisfies Record<string, Option>;

export const TWIN = {
  "twin-url": {
    kind: baseUrl,
    otherwise: "the other environment's default address",
    help: "Base address of the other environment, for the OpenAPI document",
  },
} as const satisfies Record<string, Option>;

export const PROXIES = {
  "trust-proxy": {
    kind: list(network),
    default: [],
    otherwise: "none",
    repeatable: true,
    help: "Proxies whose X-Forwarded-For is believed; may be repeated",
  },
} as const satisfies Record<string, Option>;

/** Limits are requests per minute and per day. Enterprise has none here: its numbers are each key's own. */
export const PLAN_LIMITS = {
  "free-limits": {
    kind: limitPair,
    default: DEFAULT_PLANS.free,
    help: "Requests per minute and per day on the Free plan",
  },
  "pro-limits": { kind: limitPair, default: DEFAULT_PLANS.pro, help: "The same for the Pro plan" },
  "business-limits": {
    kind: limitPair,
    default: DEFAULT_PLANS.business,
    help: "The same for the Business plan",
  },
} as const satisfies Record<string, Option>;

export const LEAVING = {
  "drain-delay": {
    kind: duration({ min: 0, max: 5 * SECOND }),
    default: 0,
    help: "How long to serve on after a stop was asked for, while /healthz says 503 to load balancers",
  },
} as const satisfies Record<string, Option>;

export const ANONYMOUS_LIMITS = {
  "anonymous-limits": {
    kind: limitPair,
    default: DEFAULT_PLANS.anonymous,
    help: "The same for clients without a valid key, by address",
  },
} as const satisfies Record<string, Option>;

export const BAN = {
  "ban-strikes": {
    kind: integer({ min: 1, max: 1_000_000 }),
    default: DEFAULT_BAN.strikes,
    help: "Requests sent on after a 429 that get a key banned",
  },
  "ban-grace": {
    kind: duration({ min: 0, max: HOUR }),
    default: DEFAULT_BAN.graceMs,
    help: "Time after the first 429 in which they are forgiven",
  },
  "ban-length": {
    kind: duration({ min: SECOND, max: 30 * DAY }),
    default: DEFAULT_BAN.lengthMs,
    help: "How long a ban lasts",
  },
} as const satisfies Record<string, Option>;

/** What the service itself can be told. */
export const SETTINGS = {
  ...PLACE,
  ...PATIENCE,
  ...ADDRESS,
  ...TWIN,
  ...PROXIES,
  ...LEAVING,
  ...PLAN_LIMITS,
  ...ANONYMOUS_LIMITS,
  ...BAN,
} as const;

/** What the commands on keys can be told beyond that. */
export const KEY_OPTIONS = {
  name: { kind: text("NAME", 100), help: "What the key is for; shown in listings" },
  plan: { kind: choice("PLAN", PLANS), help: "The key's plan" },
  "per-minute": {
    kind: requestCount,
    help: "The key's own limit per minute; enterprise only, and required there",
  },
  "per-day": { kind: requestCount, help: "The key's own limit per day; enterprise only, and required there" },
  expires: {
    kind: duration({ min: SECOND, max: 3_650 * DAY }),
    otherwise: "never",
    help: "Time from now after which the key no longer works",
  },
  overlap: {
    kind: duration({ min: 0, max: 30 * DAY }),
    default: DAY,
    help: "Time for which the secrets before the new one go on working",
  },
  json: { kind: toggle, default: false, help: "Print JSON, for programs" },
} as const satisfies Record<string, Option>;

/** Every option there is; a flag means the same wherever it is taken. */
export const OPTIONS = { ...SETTINGS, ...KEY_OPTIONS } as const;

/** The one place that reads the process's environment. */
export function processVariables(): Variables {
  return process.env;
}

export function configOf(values: ValuesOf<typeof SETTINGS>): Config {
  const publicUrl = values["public-url"];
  const twinUrl = values["twin-url"];
  const limitsTimeoutMs = values["limits-timeout"];
  return {
    ...placeOf(values),
    ...(limitsTimeoutMs !== undefined && { limitsTimeoutMs }),
    host: values.host,
    port: values.port ?? DEFAULT_PORT[values.env],
    ...(publicUrl !== undefined && { publicUrl }),
    ...(twinUrl !== undefined && { twinUrl }),
    trustedProxies: values["trust-proxy"],
    drainDelayMs: values["drain-delay"],
    plans: { ...plansOf(values), anonymous: values["anonymous-limits"] },
    ban: banOf(values),
  };
}

export function placeOf(values: ValuesOf<typeof PLACE>): Place {
  const databaseUrl = values["database-url"];
  const limitsUrls = values["limits-url"];
  return {
    environment: values.env,
    dataDir: values.data,
    ...(databaseUrl !== undefined && { databaseUrl }),
    ...(limitsUrls !== undefined && { limitsUrls }),
  };
}

export function plansOf(values: ValuesOf<typeof PLAN_LIMITS>): Plans {
  return {
    ...DEFAULT_PLANS,
    free: values["free-limits"],
    pro: values["pro-limits"],
    business: values["business-limits"],
  };
}

export function banOf(values: ValuesOf<typeof BAN>): BanRules {
  return { strikes: values["ban-strikes"], graceMs: values["ban-grace"], lengthMs: values["ban-length"] };
}

export const DEFAULT_URL: Record<Environment, string> = {
  production: listenUrl(ADDRESS.host.default, DEFAULT_PORT.production),
  staging: listenUrl(ADDRESS.host.default, DEFAULT_PORT.staging),
};

/** The base address that a server with these settings answers at; undefined when that is known once it listens. */
export function expectedUrl(
  values: ValuesOf<typeof ADDRESS> & { readonly env: Environment },
): string | undefined {
  const { host, port = DEFAULT_PORT[values.env] } = values;
  return values["public-url"] ?? (port === 0 ? undefined : listenUrl(host, port));
}

/** Both base addresses, for the OpenAPI document; `own` is where this environment answers. */
export function serversOf(
  { environment, twinUrl }: Pick<Config, "environment" | "twinUrl">,
  own: string,
): Record<Environment, string> {
  return environment === "production"
    ? { production: own, staging: twinUrl ?? DEFAULT_URL.staging }
    : { production: twinUrl ?? DEFAULT_URL.production, staging: own };
}

/** The configuration tables of the documentation: the service's settings, and the flags of the key commands. */
export function configurationTables(): { settings: string; keys: string } {
  return { settings: markdownTable(SETTINGS), keys: markdownTable(KEY_OPTIONS) };
}
