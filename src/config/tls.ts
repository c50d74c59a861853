import { createPrivateKey, X509Certificate } from "node:crypto";
import { statSync } from "node:fs";
import { quotedPath, readTextFile, UsageError } from "./usage-error.ts";

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

interface FollowOptions {
  readonly onChange: (credentials: TlsCredentials) => void;
  /** The files have changed and cannot be used. They are read again when they change again. */
  readonly onError: (error: unknown) => void;
}

const FOLLOW_EVERY_MS = 1_000;

/** Throws if a file cannot be read, or if they do not belong together. */
export function readTlsFiles(files: TlsFiles): TlsCredentials {
  const credentials = readTlsCredentials(files);
  if (credentials instanceof UsageError) throw new Error(credentials.message);
  return credentials;
}

/**
 * Reads the files again when they have changed. It waits until they stay the same from one look to the next, because
 * whatever renews a certificate writes one file after the other. Returns a function that stops it.
 */
export function followTlsFiles(files: TlsFiles, options: FollowOptions): () => void {
  const { onChange, onError } = options;
  let used = versionOf(files);
  let seen = used;
  const timer = setInterval(() => {
    const version = versionOf(files);
    const isStable = version === seen;
    seen = version;
    if (version === used || !isStable) return;
    used = version;
    try {
      onChange(readTlsFiles(files));
    } catch (error) {
      onError(error);
    }
  }, FOLLOW_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Changes with the files. Symbolic links are followed, because some programs renew certificates by changing a link. */
function versionOf({ certFile, keyFile }: TlsFiles): string {
  return [certFile, keyFile].map(fileVersion).join();
}

function fileVersion(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "none" : `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`;
}
