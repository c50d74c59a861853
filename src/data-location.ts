import { resolve } from "node:path";
import type { DataDirectory } from "./data-directory.ts";
import type { Environment } from "./domain/environments.ts";
import type { LatestTimeline } from "./store/postgres/primary.ts";
import { hostUrls, withoutCredentials } from "./text/host-urls.ts";

/** The PostgreSQL database of an environment, and how its primary is found. */
export interface PostgresLocation {
  readonly url: string;
  /** The path of the file that contains `url`, if it is in one. */
  readonly urlFile: string | undefined;
  readonly schema: Environment;
  /** Whether to use the server that accepts writes now, whatever its timeline is. */
  readonly acceptsAny: boolean;
  readonly latestTimeline: LatestTimeline;
}

interface DataLocationOptions {
  readonly directory: DataDirectory;
  /** The URL of PostgreSQL; undefined means SQLite in the directory. */
  readonly url?: string | undefined;
  readonly urlFile?: string | undefined;
  readonly acceptsAny?: boolean | undefined;
}

/** Where the data of an environment are: in PostgreSQL, or in SQLite in the directory. */
export class DataLocation {
  readonly environment: Environment;
  readonly directory: DataDirectory;
  /** Undefined means SQLite in the directory. */
  readonly postgres: PostgresLocation | undefined;

  constructor({ directory, url, urlFile, acceptsAny = false }: DataLocationOptions) {
    const { environment, latestTimeline } = directory;
    this.environment = environment;
    this.directory = directory;
    this.postgres =
      url === undefined ? undefined : { url, urlFile, schema: environment, acceptsAny, latestTimeline };
  }

  /** Where the database is, for people: without user names and passwords. */
  get address(): string {
    return this.postgres === undefined
      ? this.directory.path
      : `PostgreSQL at ${withoutCredentials(this.postgres.url)}`;
  }

  /** The name in messages, such as `production (data: ./data)`. */
  get name(): string {
    return `${this.environment} (data: ${this.address})`;
  }

  /** Whether a server stores files in the directory: its database, or the latest primary of several servers. */
  get needsDirectory(): boolean {
    return this.postgres === undefined || hostUrls(this.postgres.url).length > 1;
  }

  /** Whether there may be a database: whether PostgreSQL has the tables, only a connection shows. */
  mayHaveDatabase(): boolean {
    return this.postgres !== undefined || this.directory.hasDatabase();
  }

  /** Throws if there is no SQLite database. That of PostgreSQL throws when it is opened. */
  rejectMissingDatabase(): void {
    if (this.mayHaveDatabase()) return;
    this.directory.rejectLostDatabase();
    throw new NoDatabase(this);
  }
}

/** There is no database where a command has looked, and only commands that say so make one. */
export class NoDatabase extends Error {
  constructor({ postgres, directory, environment, name }: DataLocation) {
    const reason =
      postgres === undefined
        ? `${resolve(directory.files.database)} does not exist`
        : `it has no tables of ${environment}`;
    super(
      `there is no database in ${name}: ${reason}; name it with --data, --env, --database-url or --env-file, or make one with petstore serve or petstore migrate`,
    );
  }
}
