import { createPrivateKey, X509Certificate } from "node:crypto";
import { UsageError } from "./usage-error.ts";
import { readTextFile } from "./read-file.ts";
import { quotedPath } from "./quoted.ts";

/** The paths of PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Reads the certificate, followed by its chain, and the key, both in PEM. Throws UsageError. */
export function readTlsFiles({ certFile, keyFile }: TlsFiles): {
  readonly cert: string;
  readonly key: string;
} {
  const cert = readTextFile("--tls-cert", certFile);
  const key = readTextFile("--tls-key", keyFile);
  const certificate = attempt(
    () => new X509Certificate(cert),
    `--tls-cert is ${quotedPath(certFile)}; it is not a certificate in PEM format`,
  );
  const privateKey = attempt(
    () => createPrivateKey(key),
    `--tls-key is ${quotedPath(keyFile)}; it is not a private key in PEM format without passphrase`,
  );
  if (certificate.checkPrivateKey(privateKey)) return { cert, key };
  throw new UsageError(
    `--tls-key ${quotedPath(keyFile)} is not the private key of --tls-cert ${quotedPath(certFile)}`,
  );
}

function attempt<T>(work: () => T, problem: string): T {
  try {
    return work();
  } catch {
    throw new UsageError(problem);
  }
}
