import { DataDirectory } from "../src/data-directory.ts";

/** The data of production in a directory. */
export const directoryAt = (path: string) => new DataDirectory({ path, environment: "production" });

export const storageIn = (path: string) =>
  ({ environment: "production", directory: directoryAt(path) }) as const;
