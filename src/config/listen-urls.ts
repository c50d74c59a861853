import type { Environment } from "../domain/environments.ts";
import { BASE_PATH } from "../domain/paths.ts";
import { ipVersionOf, isLoopback } from "../runtime/ip-network.ts";
import { ADDRESS_OPTIONS, DEFAULT_PORT } from "./options.ts";
import type { ValuesOf } from "./parse-options.ts";

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

/**
 * The certificate of the listener for operators: none on a loopback address, because the certificate is for the name
 * that clients use.
 */
export function adminTls<T>({ host }: { readonly host: string }, tls: T | undefined): T | undefined {
  return isLoopback(host) ? undefined : tls;
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
