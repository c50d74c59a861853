import { join } from "node:path";
import type { Environment } from "../domain/api-keys.ts";
import { DEFAULT_PLANS, type Plans } from "../domain/plans.ts";
import type { BanRules } from "../domain/rate-limit.ts";
import { BASE_PATH } from "../petstore/operations.ts";
import { type IpNetwork, ipVersionOf } from "./network.ts";
import {
  ADDRESS_OPTIONS,
  type ADMIN_OPTIONS,
  type BAN_OPTIONS,
  DEFAULT_ADMIN_PORT,
  DEFAULT_PORT,
  type PLAN_OPTIONS,
  type SETTINGS,
  type STORAGE_OPTIONS,
} from "./options.ts";
import type { ValuesOf, Variables } from "./parse-options.ts";
import type { TlsFiles } from "./tls.ts";

/** The settings of a server, parsed once. URLs of the API include BASE_PATH. */
export interface Config extends StorageConfig {
  readonly host: string;
  /** 0 means any free port. */
  readonly port: number;
  /** How long a request waits for Valkey. */
  readonly limitsTimeoutMs: number;
  /** URL of the API as clients see it; undefined means the address listened on. */
  readonly publicUrl?: string;
  /** URL of the API in the other environment, for the documentation and the OpenAPI document. */
  readonly otherEnvironmentUrl?: string;
  /** Undefined means plain HTTP. */
  readonly tls?: TlsFiles;
  /** Networks whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly IpNetwork[];
  /** Origins of web pages whose scripts may use the API; undefined means none. */
  readonly corsOrigins?: readonly string[];
  /** Undefined means as many as the limit of open files allows. */
  readonly maxConnections?: number;
  /** Connections of one IPv4 address or IPv6 /64 network; 0 means any number. */
  readonly maxConnectionsPerAddress: number;
  /** How long the server keeps serving after a stop signal, so that load balancers notice it first. */
  readonly drainDelayMs: number;
  /** Path of the access log, or - for standard output; undefined means none. */
  readonly accessLog?: string;
  readonly plans: Plans;
  readonly ban: BanRules;
  /** Older entries of the audit trail are deleted; undefined means none. */
  readonly auditRetentionMs?: number;
  /** The listener for operators; undefined means none. */
  readonly admin?: AdminConfig;
}

export interface AdminConfig {
  readonly host: string;
  /** 0 means any free port. */
  readonly port: number;
  /** Whether nobody asked for this address: if the port is taken, another one is used. */
  readonly isDefault: boolean;
  /** Names by which browsers may address it, in lower case. */
  readonly hostnames: readonly string[];
  /** Undefined means that it is made once and kept in `dataDir`. */
  readonly token?: string;
  /** A file with the token, which may change. */
  readonly tokenFile?: string;
  /** Whether /metrics responds without the token. */
  readonly areMetricsPublic: boolean;
}

/** Where an environment stores its data and counts its rate limits. */
export interface StorageConfig {
  readonly environment: Environment;
  readonly dataDir: string;
  /** PostgreSQL; undefined means SQLite in `dataDir`. */
  readonly databaseUrl?: string;
  /** Valkey: one server, or several nodes of a cluster. Undefined means in the server process. */
  readonly limitsUrls?: readonly string[];
  /** Path of the certificates (PEM) that sign Valkey's; undefined means the well-known authorities. */
  readonly limitsCaFile?: string;
}

/** The one place that reads the process's environment variables. */
export function processVariables(): Variables {
  return process.env;
}

export function configOf(values: ValuesOf<typeof SETTINGS>): Config {
  const publicUrl = values["public-url"];
  const otherEnvironmentUrl = values["other-environment-url"];
  const certFile = values["tls-cert"];
  const keyFile = values["tls-key"];
  const maxConnections = values["max-connections"];
  const accessLog = values["access-log"];
  const auditRetentionMs = values["audit-retention"];
  return {
    ...storageOf(values),
    limitsTimeoutMs: values["limits-timeout"],
    host: values.host,
    port: values.port ?? DEFAULT_PORT[values.env],
    ...(publicUrl !== undefined && { publicUrl }),
    ...(otherEnvironmentUrl !== undefined && { otherEnvironmentUrl }),
    ...(certFile !== undefined && keyFile !== undefined && { tls: { certFile, keyFile } }),
    trustedProxies: values["trust-proxy"],
    corsOrigins: values["cors-origin"],
    ...(maxConnections !== undefined && { maxConnections }),
    maxConnectionsPerAddress: values["max-connections-per-address"],
    drainDelayMs: values["drain-delay"],
    ...(accessLog !== undefined && { accessLog }),
    plans: { ...plansOf(values), anonymous: values["anonymous-limits"] },
    ban: banRulesOf(values),
    ...(auditRetentionMs !== null && { auditRetentionMs }),
    ...adminOf(values),
  };
}

function adminOf(
  values: ValuesOf<typeof ADMIN_OPTIONS> & { readonly env: Environment },
): Pick<Config, "admin"> {
  const address = values["admin-address"];
  if (address === "off") return {};
  const token = values["admin-token"];
  const tokenFile = values["admin-token-file"];
  const admin: AdminConfig = {
    ...(address ?? { host: "127.0.0.1", port: DEFAULT_ADMIN_PORT[values.env] }),
    isDefault: address === undefined,
    hostnames: values["admin-hostname"],
    ...(token !== undefined && { token }),
    ...(tokenFile !== undefined && { tokenFile }),
    areMetricsPublic: values["metrics-public"],
  };
  return { admin };
}

export function storageOf(values: ValuesOf<typeof STORAGE_OPTIONS>): StorageConfig {
  const databaseUrl = values["database-url"];
  const limitsUrls = values["limits-url"];
  const limitsCaFile = values["limits-ca"];
  return {
    environment: values.env,
    dataDir: values.data,
    ...(databaseUrl !== undefined && { databaseUrl }),
    ...(limitsUrls !== undefined && { limitsUrls }),
    ...(limitsCaFile !== undefined && { limitsCaFile }),
  };
}

export function plansOf(values: ValuesOf<typeof PLAN_OPTIONS>): Plans {
  return {
    ...DEFAULT_PLANS,
    free: values["free-limits"],
    pro: values["pro-limits"],
    business: values["business-limits"],
  };
}

export function banRulesOf(values: ValuesOf<typeof BAN_OPTIONS>): BanRules {
  const lengthMs = values["ban-length"];
  return {
    strikes: values["ban-strikes"],
    graceMs: values["ban-grace"],
    lengthMs,
    maxLengthMs: Math.max(lengthMs, values["ban-max-length"]),
  };
}

/** The files of an environment; one server holds the lock. */
export function pathsOf({ dataDir, environment }: StorageConfig) {
  const path = join(dataDir, environment);
  return {
    store: `${path}.db`,
    usageStore: `${path}-limits.db`,
    lock: `${path}.lock`,
    firstKey: `${path}-first-key`,
    adminToken: `${path}-admin-token`,
    adminUrl: `${path}-admin-url`,
    /** A directory that exists while a restore replaces the databases. */
    restore: `${path}-restore`,
  } as const;
}

/** For people: without user names and passwords. */
export function describeStorage(storage: StorageConfig): { data: string; rateLimits: string } {
  const { dataDir, databaseUrl, limitsUrls } = storage;
  return {
    data: databaseUrl === undefined ? dataDir : `PostgreSQL at ${withoutCredentials(databaseUrl)}`,
    rateLimits:
      limitsUrls === undefined
        ? "in the server process"
        : `Valkey at ${limitsUrls.map(withoutCredentials).join(", ")}`,
  };
}

function withoutCredentials(url: string): string {
  const { host, pathname } = new URL(url);
  return host + pathname.replace(/\/$/, "");
}

/** The URL of the API on a listener. */
export function listenUrl(host: string, port: number, { isTls = false } = {}): string {
  return originOf({ host, port, isTls }) + BASE_PATH;
}

/** The origin of a listener. One that listens on all addresses is reached over loopback. */
export function originOf({ host, port, isTls }: { host: string; port: number; isTls: boolean }): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const authority = `${ipVersionOf(reachable) === 6 ? `[${reachable}]` : reachable}:${port}`;
  return `${isTls ? "https" : "http"}://${authority}`;
}

export const DEFAULT_URL: Readonly<Record<Environment, string>> = {
  production: listenUrl(ADDRESS_OPTIONS.host.default, DEFAULT_PORT.production),
  staging: listenUrl(ADDRESS_OPTIONS.host.default, DEFAULT_PORT.staging),
};

/** The URL of the API on a server with these settings; undefined for port 0. */
export function expectedUrl(
  values: Omit<ValuesOf<typeof ADDRESS_OPTIONS>, "tls-key"> & { readonly env: Environment },
): string | undefined {
  const { host, port = DEFAULT_PORT[values.env] } = values;
  const isTls = values["tls-cert"] !== undefined;
  return values["public-url"] ?? (port === 0 ? undefined : listenUrl(host, port, { isTls }));
}

/** The URLs of both environments, for the OpenAPI document; `ownUrl` is this environment's. */
export function serversOf(
  { environment, otherEnvironmentUrl }: Pick<Config, "environment" | "otherEnvironmentUrl">,
  ownUrl: string,
): Record<Environment, string> {
  return environment === "production"
    ? { production: ownUrl, staging: otherEnvironmentUrl ?? DEFAULT_URL.staging }
    : { production: otherEnvironmentUrl ?? DEFAULT_URL.production, staging: ownUrl };
}
