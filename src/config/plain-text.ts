import { isLoopback } from "../runtime/ip-network.ts";
import { hostUrls } from "../text/host-urls.ts";
import type { Config } from "./config.ts";
import type { Variables } from "./parse-options.ts";

/** A connection, named by the beginning of its log event. */
export type PlainTextConnection = "connections" | "admin" | "database";

/** Lists the connections that are unencrypted over a network. `PGSSLMODE` is the default of sslmode. */
export function plainTextConnections(config: Config, variables: Variables): PlainTextConnection[] {
  const { host, tls, admin, trustedProxies, data } = config;
  const connections: PlainTextConnection[] = [];
  if (!isLoopback(host) && tls === undefined && trustedProxies.length === 0) connections.push("connections");
  if (admin && !isLoopback(admin.host) && tls === undefined) connections.push("admin");
  const databaseUrls = data.postgres === undefined ? [] : hostUrls(data.postgres.url);
  if (databaseUrls.some((url) => isPlainPostgres(new URL(url), variables["PGSSLMODE"]))) {
    connections.push("database");
  }
  return connections;
}

const ALWAYS_ENCRYPTED = /^(?:require|verify-ca|verify-full)$/;

function isPlainPostgres({ hostname, searchParams }: URL, defaultMode = "disable"): boolean {
  return !isLoopback(hostname) && !ALWAYS_ENCRYPTED.test(searchParams.get("sslmode") ?? defaultMode);
}
