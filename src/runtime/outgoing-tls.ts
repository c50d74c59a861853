import { getCACertificates } from "node:tls";

/** The authorities of the runtime, of NODE_EXTRA_CA_CERTS and of the system, read once. */
let certificates: string[] | undefined;

/** Options of `fetch` for a URL that an operator has named. */
export function tlsFor(url: string): Pick<BunFetchRequestInit, "tls"> {
  if (!url.startsWith("https:")) return {};
  certificates ??= [...new Set([...getCACertificates("default"), ...getCACertificates("system")])];
  return { tls: { rejectUnauthorized: true, ca: certificates } };
}
