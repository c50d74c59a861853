import { isIP } from "node:net";
import type { Request } from "../http1/index.ts";

type Checked = Pick<Request, "method" | "headers">;

/**
 * Whether the name that the client looked up is one of this server's. A page elsewhere can point its own name to this
 * address (DNS rebinding) and would then have the same origin; its name gives it away.
 */
export function isOwnHost({ headers }: Pick<Request, "headers">, hostnames: readonly string[]): boolean {
  // HTTP/1.0 has no Host. Browsers do not send it.
  const host = headers.get("host");
  if (host === null) return true;
  const name = host.replace(/:\d*$/, "").toLowerCase();
  const address = name.replace(/^\[(.*)\]$/, "$1");
  if (isIP(address) !== 0 || name === "localhost") return true;
  return hostnames.includes(name);
}

/** What browsers send for a page of this origin, and for an address that a user typed. */
const OWN_SITES = new Set(["same-origin", "none"]);
export const SAFE_METHODS = new Set(["GET", "HEAD"]);

/**
 * Whether a request can come from a page of another origin. Cookies do not tell ports apart, so pages on other ports of
 * the same machine send the session cookie too. Browsers send `Origin` with every request that may change something.
 */
export function isFromOtherOrigin({ method, headers }: Checked): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null && !OWN_SITES.has(site)) return true;
  const origin = headers.get("origin");
  if (origin !== null) return hostOf(origin) !== (headers.get("host")?.toLowerCase() ?? null);
  const usesCookie = headers.get("cookie") !== null && headers.get("authorization") === null;
  return usesCookie && site === null && !SAFE_METHODS.has(method);
}

/** A proxy that terminates TLS changes the scheme, not the host. `null` is the origin of a sandboxed page. */
function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/]+)$/.exec(origin.toLowerCase())?.[1];
}
