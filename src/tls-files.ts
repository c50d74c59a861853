import { statSync } from "node:fs";
import { readTlsCredentials, type TlsCredentials, type TlsFiles } from "./config/tls.ts";
import { UsageError } from "./config/usage-error.ts";

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
