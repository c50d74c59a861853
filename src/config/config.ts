import { X509Certificate } from "node:crypto";
import { hostUrls, withoutCredentials } from "../text/host-urls.ts";
import { DataDirectory } from "../data-directory.ts";
import type { Environment } from "../domain/environments.ts";
import { BASE_PATH } from "../domain/paths.ts";
import { followSetting, type SettingFileReports } from "./follow-files.ts";
import { ipVersionOf, isLoopback } from "../runtime/ip-network.ts";
import {
  type ACCEPT_PRIMARY_OPTION,
  ADDRESS_OPTIONS,
  type ADMIN_OPTIONS,
  DEFAULT_ADMIN_PORT,
  DEFAULT_PORT,
  type NEW_DATABASE_OPTION,
  type OIDC_OPTIONS,
  type SETTINGS,
  STORAGE_OPTIONS,
  type TRACING_OPTIONS,
  type WEBHOOK_OPTIONS,
} from "./options.ts";
import { readFromFile, type ValuesOf, type Variables } from "./parse-options.ts";
import { givenPolicy } from "./policy-options.ts";
import { UsageError } from "./usage-error.ts";
import { readTextFile } from "./read-file.ts";
import { quotedPath } from "./quoted.ts";

/** The settings of a server, parsed once. URLs of the API include BASE_PATH. */
export type Config = ReturnType<typeof configOf>;

/** The listener for operators. */
export type AdminConfig = NonNullable<Config["admin"]>;

/** The provider with which operators sign in. */
export type ProviderConfig = NonNullable<AdminConfig["provider"]>;

/** Where an environment stores its data and counts its rate limits. */
export interface StorageConfig {
  readonly environment: Environment;
  readonly directory: DataDirectory;
  /** The URL of PostgreSQL; undefined means SQLite in the directory. */
  readonly databaseUrl?: string | undefined;
  /** The path of the file that contains `databaseUrl`, if it is in one. */
  readonly databaseUrlFile?: string | undefined;
  /** The URLs of Valkey: one server, or several nodes of a cluster. Undefined means that the server process counts. */
  readonly limitsUrls?: readonly string[] | undefined;
  readonly limitsUrlFile?: string | undefined;
  /** The path of the certificates (PEM) that sign Valkey's; undefined means the well-known authorities. */
  readonly limitsCaFile?: string | undefined;
  /** Whether to use the PostgreSQL server that accepts writes now, whatever its timeline is. */
  readonly acceptsPrimary?: boolean | undefined;
}

/** Returns the variables of the process. Only this function reads them. */
export function processVariables(): Variables {
  return process.env;
}

/** The values that apply to one start, or to one command. */
type OnceValues = Partial<ValuesOf<typeof ACCEPT_PRIMARY_OPTION & typeof NEW_DATABASE_OPTION>>;

/** Makes the configuration. An undefined value means the default that the option describes. */
export function configOf(values: ValuesOf<typeof SETTINGS> & OnceValues) {
  const { "tls-cert": certFile, "tls-key": keyFile } = values;
  return {
    ...storageOf(values),
    limitsTimeoutMs: values["limits-timeout"],
    host: values.host,
    /** 0 means any free port. */
    port: values.port ?? DEFAULT_PORT[values.env],
    publicUrl: values["public-url"],
    otherEnvironmentUrl: values["other-environment-url"],
    securityContacts: values["security-contact"],
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    trustedProxies: values["trust-proxy"],
    corsOrigins: values["cors-origin"],
    maxConnections: values["max-connections"],
    maxConnectionsPerAddress: values["max-connections-per-address"],
    drainDelayMs: values["drain-delay"],
    accessLog: values["access-log"],
    accessLogOmit: values["access-log-omit"],
    requestLogBytes: values["request-log"],
    givenPolicy: givenPolicy(values),
    admin: adminOf(values),
    webhook: webhookOf(values),
    tracing: tracingOf(values),
  };
}

/** Undefined if nothing is delivered. */
function webhookOf(values: ValuesOf<typeof WEBHOOK_OPTIONS>) {
  const { "webhook-url": url, "webhook-secret": secrets, "webhook-events": events } = values;
  if (url === undefined || secrets === undefined) return undefined;
  const secretFile = values["webhook-secret-file"];
  return { url, secrets, ...(secretFile !== undefined && { secretFile }), events };
}

/** Undefined if no request is traced. */
function tracingOf({ "otlp-url": url, "otlp-sample": sample }: ValuesOf<typeof TRACING_OPTIONS>) {
  return url === undefined ? undefined : { url, sample };
}

/** Undefined if operators sign in with tokens only. */
function providerOf(values: ValuesOf<typeof OIDC_OPTIONS>) {
  const { "oidc-issuer": issuer, "oidc-client-id": clientId, "oidc-client-secret": secret } = values;
  const { "oidc-client-secret-file": secretFile, "oidc-role": rules } = values;
  if (issuer === undefined || clientId === undefined || secret === undefined || rules === undefined)
    return undefined;
  return { issuer, clientId, secret, ...(secretFile !== undefined && { secretFile }), rules };
}

function adminOf(
  values: ValuesOf<typeof ADMIN_OPTIONS & typeof OIDC_OPTIONS> & { readonly env: Environment },
) {
  const address = values["admin-address"];
  if (address === "off") return undefined;
  return {
    ...(address ?? { host: "127.0.0.1", port: DEFAULT_ADMIN_PORT[values.env] }),
    /** Whether the address is the default. If its port is taken, another one is used. */
    isDefault: address === undefined,
    /** The names by which browsers may address the listener, in lower case. */
    hostnames: address ? [...values["admin-hostname"], address.host.toLowerCase()] : values["admin-hostname"],
    token: values["admin-token"],
    tokenFile: values["admin-token-file"],
    /** The file of the token of the operator for Prometheus. */
    metricsTokenFile: values["metrics-token-file"],
    areMetricsPublic: values["metrics-public"],
    provider: providerOf(values),
  };
}

export function storageOf(values: ValuesOf<typeof STORAGE_OPTIONS> & OnceValues): StorageConfig {
  const { env: environment, data: path, "new-database": allowsNewDatabase } = values;
  return {
    environment,
    directory: new DataDirectory({ path, environment, allowsNewDatabase }),
    databaseUrl: values["database-url"],
    databaseUrlFile: values["database-url-file"],
    limitsUrls: values["limits-url"],
    limitsUrlFile: values["limits-url-file"],
    limitsCaFile: values["limits-ca"],
    acceptsPrimary: values["accept-primary"],
  };
}

/** How to connect to what servers share. A file may have changed it since the start. */
export interface StorageUrls {
  databaseUrl(): string | undefined;
  valkey(): { readonly urls: readonly string[]; readonly ca?: string };
}

/** How a command connects. Throws if the certificates are unreadable. */
export function storageUrlsOf({
  databaseUrl,
  limitsUrls: urls = [],
  limitsCaFile,
}: StorageConfig): StorageUrls {
  return {
    databaseUrl: () => databaseUrl,
    valkey: () => ({ urls, ...(limitsCaFile !== undefined && { ca: readAuthorities(limitsCaFile) }) }),
  };
}

/** How a server connects. Files that change are read again. Throws if the certificates are unreadable. */
export function followStorageUrls(
  storage: StorageConfig,
  reports: SettingFileReports,
): StorageUrls & { close(): void } {
  const { "database-url": databaseOption, "limits-url": limitsOption } = STORAGE_OPTIONS;
  const { databaseUrlFile, limitsUrlFile, limitsCaFile } = storage;
  const { urls: firstUrls, ca: firstCa } = storageUrlsOf(storage).valkey();
  const databaseUrl = followSetting(
    { setting: "database-url-file", file: databaseUrlFile, first: storage.databaseUrl },
    (file) => readFromFile(databaseOption, file),
    reports,
  );
  const urls = followSetting(
    { setting: "limits-url-file", file: limitsUrlFile, first: firstUrls },
    (file) => readFromFile(limitsOption, file),
    reports,
  );
  const ca = followSetting(
    { setting: "limits-ca", file: limitsCaFile, first: firstCa },
    readAuthorities,
    reports,
  );
  return {
    databaseUrl: () => databaseUrl.current,
    valkey: () => ({ urls: urls.current, ...(ca.current !== undefined && { ca: ca.current }) }),
    close() {
      for (const each of [databaseUrl, urls, ca]) each.close();
    },
  };
}

/** Reads the certificates of --limits-ca. Throws UsageError. */
export function readAuthorities(file: string): string {
  const text = readTextFile("--limits-ca", file);
  if (isCertificate(text)) return text;
  throw new UsageError(`--limits-ca is ${quotedPath(file)}; it is not a certificate in PEM format`);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== "";
  } catch {
    return false;
  }
}

/** How to connect to the Valkey of an environment. Throws if the certificates are unreadable. */
export function valkeyOf(storage: StorageConfig, urls: StorageUrls = storageUrlsOf(storage)) {
  return { ...urls.valkey(), prefix: `petstore:${storage.environment}:` };
}

/** Describes the storage for people, without user names and passwords. */
export function describeStorage(storage: StorageConfig): { data: string; rateLimits: string } {
  const { directory, databaseUrl, limitsUrls } = storage;
  const postgres = databaseUrl === undefined ? undefined : `PostgreSQL at ${withoutCredentials(databaseUrl)}`;
  return {
    data: postgres ?? directory.path,
    rateLimits:
      limitsUrls === undefined
        ? (postgres ?? "in the server process")
        : `Valkey at ${limitsUrls.map(withoutCredentials).join(", ")}`,
  };
}

export function databaseExists({ databaseUrl, directory }: StorageConfig): boolean {
  return databaseUrl !== undefined || directory.hasDatabase();
}

/** Describes an environment, such as `production (data: ./data)`. */
export function describeEnvironment(storage: StorageConfig): string {
  return `${storage.environment} (data: ${describeStorage(storage).data})`;
}

/** The URL of the API on a listener. */
export function listenUrl(host: string, port: number, { isTls = false } = {}): string {
  return originOf({ host, port, isTls }) + BASE_PATH;
}

/** The origin of a listener. A listener on all addresses is reached over loopback. */
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

/** A connection, named by the beginning of its log event. */
type PlainTextConnection = "connections" | "admin" | "database" | "valkey";

/** Lists the connections that are unencrypted over a network. `PGSSLMODE` is the default of sslmode. */
export function plainTextConnections(config: Config, variables: Variables): PlainTextConnection[] {
  const { host, tls, admin, trustedProxies, databaseUrl, limitsUrls = [] } = config;
  const connections: PlainTextConnection[] = [];
  if (!isLoopback(host) && tls === undefined && trustedProxies.length === 0) connections.push("connections");
  if (admin && !isLoopback(admin.host) && tls === undefined) connections.push("admin");
  const databaseUrls = databaseUrl === undefined ? [] : hostUrls(databaseUrl);
  if (databaseUrls.some((url) => isPlainPostgres(new URL(url), variables["PGSSLMODE"]))) {
    connections.push("database");
  }
  if (limitsUrls.some((url) => isPlainValkey(new URL(url)))) connections.push("valkey");
  return connections;
}

const ALWAYS_ENCRYPTED = /^(?:require|verify-ca|verify-full)$/;

function isPlainPostgres({ hostname, searchParams }: URL, defaultMode = "disable"): boolean {
  return !isLoopback(hostname) && !ALWAYS_ENCRYPTED.test(searchParams.get("sslmode") ?? defaultMode);
}

function isPlainValkey({ hostname, protocol }: URL): boolean {
  return !isLoopback(hostname) && protocol !== "rediss:";
}
