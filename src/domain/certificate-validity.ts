import { DAY_MS } from "../text/time-units.ts";

/** How long before its end a certificate should be renewed. Programs that renew certificates do it weeks before. */
const RENEWAL_MS = 14 * DAY_MS;

/** The dates as a certificate of the runtime has them, such as `Nov 15 12:00:00 2026 GMT`. */
export interface CertificateDates {
  readonly validFrom: string;
  readonly validTo: string;
}

export type CertificateValidity = "not yet valid" | "valid" | "expires soon" | "expired";

export function validityOf({ validFrom, validTo }: CertificateDates, now: number): CertificateValidity {
  if (now < Date.parse(validFrom)) return "not yet valid";
  const leftMs = Date.parse(validTo) - now;
  if (leftMs < 0) return "expired";
  return leftMs < RENEWAL_MS ? "expires soon" : "valid";
}
