import { resolve } from "node:path";
import { DataDirectory } from "../data-directory.ts";
import type { Environment } from "../domain/environments.ts";
import { hostUrls, withoutCredentials } from "../text/host-urls.ts";
import type { ACCEPT_PRIMARY_OPTION, NEW_DATABASE_OPTION, STORAGE_OPTIONS } from "./options.ts";
import type { ValuesOf } from "./parse-options.ts";

/** Where an environment stores its data and counts its rate limits. */
export interface StorageConfig {
  readonly environment: Environment;
  readonly directory: DataDirectory;
  /** The URL of PostgreSQL; undefined means SQLite in the directory. */
  readonly databaseUrl?: string | undefined;
  /** The path of the file that contains `databaseUrl`, if it is in one. */
  readonly databaseUrlFile?: string | undefined;
  /** Whether to use the PostgreSQL server that accepts writes now, whatever its timeline is. */
  readonly acceptsPrimary?: boolean | undefined;
}

/** The values that apply to one start, or to one command. */
export type OnceValues = Partial<ValuesOf<typeof ACCEPT_PRIMARY_OPTION & typeof NEW_DATABASE_OPTION>>;

export function storageOf(values: ValuesOf<typeof STORAGE_OPTIONS> & OnceValues): StorageConfig {
  const { env: environment, data: path, "new-database": allowsNewDatabase } = values;
  return {
    environment,
    directory: new DataDirectory({ path, environment, allowsNewDatabase }),
    databaseUrl: values["database-url"],
    databaseUrlFile: values["database-url-file"],
    acceptsPrimary: values["accept-primary"],
  };
}

/** Describes the storage for people, without user names and passwords. */
export function describeStorage(storage: StorageConfig): { data: string; rateLimits: string } {
  const { directory, databaseUrl } = storage;
  const postgres = databaseUrl === undefined ? undefined : `PostgreSQL at ${withoutCredentials(databaseUrl)}`;
  return { data: postgres ?? directory.path, rateLimits: postgres ?? "in the server process" };
}

/** Whether there may be a database: whether PostgreSQL has the tables, only a connection shows. */
export function databaseMayExist({ databaseUrl, directory }: StorageConfig): boolean {
  return databaseUrl !== undefined || directory.hasDatabase();
}

/** Whether the database has several PostgreSQL servers, the latest primary of which is stored in the directory. */
export function hasSeveralHosts({ databaseUrl = "" }: StorageConfig): boolean {
  return hostUrls(databaseUrl).length > 1;
}

/** There is no database where a command has looked, and only commands that say so make one. */
export class NoDatabase extends Error {
  constructor(storage: StorageConfig) {
    const { databaseUrl, directory, environment } = storage;
    const reason =
      databaseUrl === undefined
        ? `${resolve(directory.files.database)} does not exist`
        : `it has no tables of ${environment}`;
    super(
      `there is no database in ${describeEnvironment(storage)}: ${reason}; name it with --data, --env, --database-url or --env-file, or make one with petstore serve or petstore migrate`,
    );
  }
}

/** Throws if there is no SQLite database. That of PostgreSQL throws when it is opened. */
export function rejectMissingDatabase(storage: StorageConfig): void {
  if (databaseMayExist(storage)) return;
  storage.directory.rejectLostDatabase();
  throw new NoDatabase(storage);
}

/** Describes an environment, such as `production (data: ./data)`. */
export function describeEnvironment(storage: StorageConfig): string {
  return `${storage.environment} (data: ${describeStorage(storage).data})`;
}
