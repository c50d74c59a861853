import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { DAY_MS } from "../text/time-units.ts";
import { check, type Finding } from "./finding.ts";

export const tlsCheck = check("TLS");
/** How long before its end a certificate should be renewed. Programs that renew certificates do it weeks before. */
const RENEWAL_DAYS = 14;

type Validity = Pick<X509Certificate, "validFrom" | "validTo">;

export function validityProblem({ validFrom, validTo }: Validity, now: number): Finding | undefined {
  const renew = "renew the certificate; a running server takes the new files within seconds";
  if (now < Date.parse(validFrom))
    return tlsCheck.error(
      `the certificate is valid from ${validFrom} on`,
      "check the clock, or wait until then",
    );
  const daysLeft = Math.floor((Date.parse(validTo) - now) / DAY_MS);
  if (daysLeft < 0) return tlsCheck.error(`the certificate expired on ${validTo}`, renew);
  return daysLeft < RENEWAL_DAYS
    ? tlsCheck.warning(`the certificate expires on ${validTo}`, renew)
    : undefined;
}

export function hostProblem(certificate: X509Certificate, publicUrl: string): Finding | undefined {
  const host = new URL(publicUrl).hostname.replace(/^\[(.*)\]$/, "$1");
  const name = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  if (name !== undefined) return undefined;
  return tlsCheck.warning(
    `the certificate is not for ${host}, the host of --public-url`,
    "use a certificate that names it, unless a proxy in front has one",
  );
}
