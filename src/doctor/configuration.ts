import type { Config } from "../config/config.ts";
import type { Variables } from "../config/parse-options.ts";
import { type PlainTextConnection, plainTextConnections } from "../config/plain-text.ts";
import { check, type Finding } from "./finding.ts";

const configuration = check("configuration");

const PLAIN_TEXT: Readonly<Record<PlainTextConnection, readonly [message: string, remedy: string]>> = {
  clients: [
    "clients send their API keys in plain text: the server listens beyond this machine without TLS",
    "set --tls-cert and --tls-key, or put a proxy with TLS in front and name it with --trust-proxy",
  ],
  operators: [
    "operators send the admin token in plain text: --admin-address is reachable from other machines without TLS",
    "set --tls-cert and --tls-key, or let --admin-address begin with 127.0.0.1",
  ],
  database: [
    "the connection to PostgreSQL is not encrypted",
    "add ?sslmode=verify-full to --database-url; see docs/deployment.md",
  ],
  valkey: ["the connection to Valkey is not encrypted", "use a rediss:// URL in --limits-url"],
};

/** Settings that are valid one by one, and do not go together. */
export function checkConfiguration(config: Config, variables: Variables): Finding[] {
  const { databaseUrl, limitsUrls, publicUrl, host } = config;
  const findings = plainTextConnections(config, variables).map((connection) =>
    configuration.warning(...PLAIN_TEXT[connection]),
  );
  if (databaseUrl !== undefined && limitsUrls === undefined) {
    findings.push(
      configuration.warning(
        "several servers on one PostgreSQL would each apply the rate limits in full",
        "set --limits-url, or run one server only",
      ),
    );
  }
  if (publicUrl === undefined && (host === "0.0.0.0" || host === "::")) {
    findings.push(
      configuration.warning(
        "links in responses and in the OpenAPI document name the address that the server listens on",
        "set --public-url to the URL that clients use",
      ),
    );
  }
  return findings.length > 0
    ? findings
    : [configuration.ok(`${config.environment}: the settings go together`)];
}
