import type { Environment } from "../domain/environments.ts";
import {
  type ADMIN_OPTIONS,
  DEFAULT_ADMIN_PORT,
  DEFAULT_PORT,
  type OIDC_OPTIONS,
  type SETTINGS,
  type TRACING_OPTIONS,
  type WEBHOOK_OPTIONS,
} from "./options.ts";
import type { ValuesOf } from "./parse-options.ts";
import { dataLocationOf, type OnceValues } from "./storage.ts";

/** The settings of a server, parsed once. URLs of the API include BASE_PATH. */
export type Config = ReturnType<typeof configOf>;

/** The listener for operators. */
export type AdminConfig = NonNullable<Config["admin"]>;

/** The provider with which operators sign in. */
export type ProviderConfig = NonNullable<AdminConfig["provider"]>;

/** Makes the configuration. An undefined value means the default that the option describes. */
export function configOf(values: ValuesOf<typeof SETTINGS> & OnceValues) {
  const { "tls-cert": certFile, "tls-key": keyFile } = values;
  return {
    data: dataLocationOf(values),
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
    auditRetentionMs: values["audit-retention"],
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
