import { createPrivateKey, X509Certificate } from "node:crypto";
import { readTextFile } from "./text-file.ts";
import { quotedPath, UsageError } from "./usage-error.ts";

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** PEM. The certificate comes first, then its chain. */
export interface TlsCredentials {
  readonly cert: string;
  readonly key: string;
}

/** Reads the certificate and its private key, and checks that they belong together. */
export function readTlsCredentials({ certFile, keyFile }: TlsFiles): TlsCredentials | UsageError {
  const cert = readTextFile("--tls-cert", certFile);
  if (cert instanceof UsageError) return cert;
  const key = readTextFile("--tls-key", keyFile);
  if (key instanceof UsageError) return key;
  const certificate = attempt(() => new X509Certificate(cert));
  if (!certificate)
    return new UsageError(`--tls-cert is ${quotedPath(certFile)}; it is not a certificate in PEM format`);
  const privateKey = attempt(() => createPrivateKey(key));
  if (!privateKey) {
    return new UsageError(
      `--tls-key is ${quotedPath(keyFile)}; it is not a private key in PEM format without passphrase`,
    );
  }
  return certificate.checkPrivateKey(privateKey)
    ? { cert, key }
    : new UsageError(
        `--tls-key ${quotedPath(keyFile)} is not the private key of --tls-cert ${quotedPath(certFile)}`,
      );
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
