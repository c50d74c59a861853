import { DataDirectory } from "../src/data-directory.ts";
import { DataLocation } from "../src/data-location.ts";

/** The data of production in a directory. */
export const directoryAt = (path: string) => new DataDirectory({ path, environment: "production" });

/** They are in PostgreSQL if there is a URL. */
export const dataIn = (path: string, url?: string) => new DataLocation({ directory: directoryAt(path), url });
