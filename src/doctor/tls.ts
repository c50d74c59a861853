import { X509Certificate } from "node:crypto";
import { statSync } from "node:fs";
import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import { readTlsCredentials } from "../config/tls.ts";
import { UsageError } from "../config/usage-error.ts";
import { check, type Finding } from "./finding.ts";

const tls = check("TLS");
const DAY_MS = 86_400_000;
/** Programs that renew certificates do so weeks before. */
const RENEWAL_DAYS = 14;
const OTHER_USERS = 0o077;

export function checkTls(
  { tls: files, publicUrl }: Pick<Config, "tls" | "publicUrl">,
  now: number,
): Finding[] {
  if (files === undefined) return [tls.ok("the server serves plain HTTP: --tls-cert is not set")];
  const credentials = readTlsCredentials(files);
  if (credentials instanceof UsageError) {
    return [
      tls.error(credentials.message, "correct the files; a running server keeps the last ones that worked"),
    ];
  }
  const certificate = new X509Certificate(credentials.cert);
  const findings = [...validity(certificate, now), ...hostOf(certificate, publicUrl)];
  if ((statSync(files.keyFile).mode & OTHER_USERS) !== 0) {
    findings.push(tls.warning(`other users can read ${files.keyFile}`, `chmod 600 ${files.keyFile}`));
  }
  return findings.length > 0 ? findings : [tls.ok(`${files.certFile} is valid until ${certificate.validTo}`)];
}

function validity({ validFrom, validTo }: X509Certificate, now: number): Finding[] {
  const renew = "renew the certificate; a running server takes the new files within seconds";
  if (now < Date.parse(validFrom)) {
    return [
      tls.error(`the certificate is valid from ${validFrom} on`, "check the clock, or wait until then"),
    ];
  }
  const daysLeft = Math.floor((Date.parse(validTo) - now) / DAY_MS);
  if (daysLeft < 0) return [tls.error(`the certificate expired on ${validTo}`, renew)];
  return daysLeft < RENEWAL_DAYS ? [tls.warning(`the certificate expires on ${validTo}`, renew)] : [];
}

function hostOf(certificate: X509Certificate, publicUrl: string | undefined): Finding[] {
  if (publicUrl === undefined) return [];
  const host = new URL(publicUrl).hostname.replace(/^\[(.*)\]$/, "$1");
  const name = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  if (name !== undefined) return [];
  return [
    tls.warning(
      `the certificate is not for ${host}, the host of --public-url`,
      "use a certificate that names it, unless a proxy in front has one",
    ),
  ];
}
