import { createPrivateKey, X509Certificate } from "node:crypto";
import { followFiles, type FollowOptions } from "./follow-files.ts";
import { quotedPath, readTextFile, UsageError } from "./usage-error.ts";

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** PEM. The certificate comes first, then its chain. */
interface TlsCredentials {
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

/** Throws if a file cannot be read, or if they do not belong together. */
export function readTlsFiles(files: TlsFiles): TlsCredentials {
  const credentials = readTlsCredentials(files);
  if (credentials instanceof UsageError) throw new Error(credentials.message);
  return credentials;
}

const FOLLOW_EVERY_MS = 1_000;

/** Returns a function that stops it. */
export function followTlsFiles(
  files: TlsFiles,
  listeners: Pick<FollowOptions<TlsCredentials>, "onChange" | "onError">,
): () => void {
  const read = () => readTlsFiles(files);
  return followFiles(Object.values(files), { everyMs: FOLLOW_EVERY_MS, read, ...listeners });
}
