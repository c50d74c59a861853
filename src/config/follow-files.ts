import { statSync } from "node:fs";

export interface FollowOptions<T> {
  readonly everyMs: number;
  /** Throws if the files cannot be used. They are read again when they change again. */
  readonly read: () => T;
  readonly onChange: (contents: T) => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Reads files again when they have changed. It waits until they stay the same from one look to the next, because
 * whatever renews a certificate writes one file after the other. Returns a function that stops it.
 */
export function followFiles<T>(paths: readonly string[], options: FollowOptions<T>): () => void {
  const { everyMs, read, onChange, onError } = options;
  const version = () => paths.map(fileVersion).join();
  let used = version();
  let seen = used;
  const timer = setInterval(() => {
    const current = version();
    const isStable = current === seen;
    seen = current;
    if (current === used || !isStable) return;
    used = current;
    try {
      onChange(read());
    } catch (error) {
      onError(error);
    }
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** Changes with the file. Symbolic links are followed, because some programs renew certificates by changing a link. */
function fileVersion(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "none" : `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`;
}
