import { READ_METHODS } from "../api/api.ts";
import type { Request } from "../http1/index.ts";
import { ipVersionOf } from "../runtime/ip-network.ts";

/**
 * Whether the client looked up a name of this server. A page elsewhere can point its own name to this address (DNS
 * rebinding) and would then have the same origin, but the Host header contains its name.
 */
export function isOwnHost({ headers }: Pick<Request, "headers">, hostnames: readonly string[]): boolean {
  // HTTP/1.0 requests may lack a Host. Browsers do not send them.
  const host = headers.get("host");
  if (host === null) return true;
  const name = host.replace(/:\d*$/, "").toLowerCase();
  const address = name.replace(/^\[(.*)\]$/, "$1");
  if (ipVersionOf(address) !== undefined || name === "localhost") return true;
  return hostnames.includes(name);
}

/** The values that browsers send for a page of this origin, and for an address that a user typed. */
const OWN_SITES = new Set(["same-origin", "none"]);

/**
 * Whether a request may come from a page of another origin. Cookies do not distinguish ports, so pages on other ports
 * of the same machine send the session cookie too. Browsers send `Origin` with every request that may change something.
 */
export function isFromOtherOrigin({ method, headers }: Pick<Request, "method" | "headers">): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null && !OWN_SITES.has(site)) return true;
  const origin = headers.get("origin");
  if (origin !== null) return hostOf(origin) !== (headers.get("host")?.toLowerCase() ?? null);
  const usesCookie = headers.get("cookie") !== null && headers.get("authorization") === null;
  return usesCookie && site === null && !READ_METHODS.has(method);
}

/**
 * The host of an origin. It is compared without the scheme, which a proxy that terminates TLS changes. `null` is the
 * origin of a sandboxed page.
 */
function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/]+)$/.exec(origin.toLowerCase())?.[1];
}
