import { contains, parseIpAddress, parseIpNetwork } from "../ip-address.ts";
import type { Config } from "./config.ts";
import type { Variables } from "./parse-options.ts";

/** What travels unencrypted over a network, and how to encrypt it. `PGSSLMODE` is the default of sslmode. */
export function plainTextWarnings(config: Config, variables: Variables): string[] {
  const { host, tls, trustedProxies, databaseUrl, limitsUrls = [] } = config;
  const warnings: string[] = [];
  if (!isLoopback(host) && tls === undefined && trustedProxies.length === 0) {
    warnings.push(
      `clients send their API keys to ${host} in plain text; serve HTTPS with --tls-cert and --tls-key, or put a proxy that does in front and name it with --trust-proxy`,
    );
  }
  if (databaseUrl !== undefined && isPlainPostgres(new URL(databaseUrl), variables["PGSSLMODE"])) {
    warnings.push(
      "the connection to PostgreSQL is in plain text, or may fall back to it; add ?sslmode=verify-full to its URL",
    );
  }
  if (limitsUrls.some((url) => isPlainValkey(new URL(url)))) {
    warnings.push("the connection to Valkey is in plain text; use rediss:// in its URL");
  }
  return warnings;
}

const ALWAYS_ENCRYPTED = /^(?:require|verify-ca|verify-full)$/;

function isPlainPostgres({ hostname, searchParams }: URL, defaultMode = "disable"): boolean {
  return !isLoopback(hostname) && !ALWAYS_ENCRYPTED.test(searchParams.get("sslmode") ?? defaultMode);
}

function isPlainValkey({ hostname, protocol }: URL): boolean {
  return !isLoopback(hostname) && protocol !== "rediss:";
}

const LOOPBACK = ["127.0.0.0/8", "::1"].flatMap((text) => parseIpNetwork(text) ?? []);

function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  const address = parseIpAddress(host.replace(/^\[(.*)\]$/, "$1"));
  return address !== undefined && LOOPBACK.some((network) => contains(network, address));
}
