import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { type CertificateDates, validityOf } from "../domain/certificate-validity.ts";
import { check, type Finding } from "./finding.ts";

export const tlsCheck = check("TLS");
export function validityProblem(certificate: CertificateDates, now: number): Finding | undefined {
  const { validFrom, validTo } = certificate;
  const renew = "renew the certificate; a running server takes the new files within seconds";
  switch (validityOf(certificate, now)) {
    case "not yet valid":
      return tlsCheck.error(
        `the certificate is valid from ${validFrom} on`,
        "check the clock, or wait until then",
      );
    case "expired":
      return tlsCheck.error(`the certificate expired on ${validTo}`, renew);
    case "expires soon":
      return tlsCheck.warning(`the certificate expires on ${validTo}`, renew);
    case "valid":
      return undefined;
  }
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
