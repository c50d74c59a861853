import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

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
 * What a killed export leaves there is overwritten by the next one. Its owner alone can read it.
 */
export function fileOutput(path: string): Output {
  const partial = `${path}.partial`;
  rmSync(partial, { force: true });
  const descriptor = openSync(partial, "wx", 0o600);
  return {
    async write(data) {
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      for (let written = 0; written < bytes.length;) written += writeSync(descriptor, bytes, written);
    },
    finish() {
      fsyncSync(descriptor);
      renameSync(partial, path);
    },
    close() {
      closeSync(descriptor);
      rmSync(partial, { force: true });
    },
  };
}
