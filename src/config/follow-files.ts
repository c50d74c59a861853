import { statSync } from "node:fs";

export interface FollowOptions<T> {
  readonly everyMs: number;
  /** Reads the files. If it throws, they are read again when they next change. */
  readonly read: () => T;
  readonly onChange: (contents: T) => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Reads files again when they have changed. It waits until they stay the same from one check to the next, because
 * programs that renew a certificate write one file after the other. Returns a function that stops it.
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

/**
 * A text that changes with the file. Symbolic links are followed, because some programs renew certificates by changing
 * a link.
 */
function fileVersion(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "none" : `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`;
}
