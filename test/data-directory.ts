import { DataDirectory } from "../src/data-directory.ts";

/** Of production. */
export const directoryAt = (path: string) => new DataDirectory({ path, environment: "production" });

export const storageIn = (path: string) =>
  ({ environment: "production", directory: directoryAt(path) }) as const;
