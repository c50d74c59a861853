import type { IPv6 } from "ipaddr.js";
import { contains, parseIpAddress, parseIpNetwork } from "../ip-address.ts";
import type { Config } from "./config.ts";
import type { Variables } from "./parse-options.ts";

export type PlainTextConnection = "clients" | "operators" | "database" | "valkey";

/** What travels unencrypted over a network. `PGSSLMODE` is the default of sslmode. */
export function plainTextConnections(config: Config, variables: Variables): PlainTextConnection[] {
  const { host, tls, admin, trustedProxies, databaseUrl, limitsUrls = [] } = config;
  const connections: PlainTextConnection[] = [];
  if (!isLoopback(host) && tls === undefined && trustedProxies.length === 0) connections.push("clients");
  if (admin && !isLoopback(admin.host) && tls === undefined) connections.push("operators");
  if (databaseUrl !== undefined && isPlainPostgres(new URL(databaseUrl), variables["PGSSLMODE"])) {
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

export function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  const address = parseIpAddress(host.replace(/^\[(.*)\]$/, "$1"));
  return address !== undefined && ["127.0.0.0/8", "::1"].some((network) => isIn(network, address));
}

function isIn(text: string, address: IPv6): boolean {
  const network = parseIpNetwork(text);
  return network !== undefined && contains(network, address);
}
