import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

interface TlsFileContents {
  readonly cert: string;
  readonly key: string;
}

interface FollowOptions {
  readonly onChange: (contents: TlsFileContents) => void;
  /** The files have changed and cannot be used. They are read again when they change again. */
  readonly onError: (error: unknown) => void;
  readonly everyMs?: number;
}

const FOLLOW_EVERY_MS = 1_000;

/** Throws if a file cannot be read, or if they do not belong together. */
export function readTlsFiles({ certFile, keyFile }: TlsFiles): TlsFileContents {
  const cert = readFileSync(certFile, "utf8");
  const key = readFileSync(keyFile, "utf8");
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error(`${keyFile} is not the private key of ${certFile}`);
  }
  return { cert, key };
}

/**
 * Reads the files again when they have changed. It waits until they stay the same from one look to the next, because
 * whatever renews a certificate writes one file after the other. Returns a function that stops it.
 */
export function followTlsFiles(files: TlsFiles, options: FollowOptions): () => void {
  const { onChange, onError, everyMs = FOLLOW_EVERY_MS } = options;
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
  }, everyMs);
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
