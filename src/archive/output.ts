import { closeSync, fstatSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";

/** Where an export goes. */
export interface Output {
  write(data: string | Uint8Array): Promise<void>;
  /** Everything is written. */
  finish(): void;
  /** After `finish`, or after a failure. */
  close(): void;
}

/**
 * A file that appears, or replaces an earlier one, when it is complete. Until then the data is in a file beside it.
 * What a killed export leaves there is overwritten by the next one. Its owner alone can read it. A device or a pipe
 * would be replaced, too, and is refused.
 */
export function fileOutput(path: string): Output {
  const earlier = statSync(path, { throwIfNoEntry: false });
  if (earlier?.isDirectory()) throw new Error(`${path} is a directory; name a file in it`);
  if (earlier && !earlier.isFile()) {
    throw new Error(`${path} is not a regular file; leave FILE out and redirect standard output to it`);
  }
  const partial = `${path}.partial`;
  rmSync(partial, { force: true });
  const descriptor = openSync(partial, "wx", 0o600);
  const own = fstatSync(descriptor).ino;
  // A later export to the same file has replaced it.
  const isReplaced = () => statSync(partial, { throwIfNoEntry: false })?.ino !== own;
  let isDone = false;
  return {
    async write(data) {
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      try {
        for (let written = 0; written < bytes.length;) written += writeSync(descriptor, bytes, written);
      } catch (error) {
        throw new Error(`cannot write ${partial}`, { cause: error });
      }
    },
    finish() {
      fsyncSync(descriptor);
      if (isReplaced())
        throw new Error(`another export to ${path} has begun meanwhile; ${path} will be its result`);
      renameSync(partial, path);
      isDone = true;
    },
    close() {
      if (!isDone && !isReplaced()) rmSync(partial, { force: true });
      closeSync(descriptor);
    },
  };
}
