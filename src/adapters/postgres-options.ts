import type { StorageConfig } from "../config/storage.ts";

/** Returns the PostgreSQL database of an environment, and how its primary is found. */
export function postgresOf(
  { databaseUrl: url = "", environment: schema, acceptsPrimary: acceptsAny, directory }: StorageConfig,
  readUrl = () => url,
) {
  return { url, readUrl, schema, acceptsAny, latestTimeline: directory.latestTimeline };
}
