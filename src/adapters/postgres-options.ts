import { type StorageUrls, storageUrlsOf } from "../config/storage-urls.ts";
import type { StorageConfig } from "../config/storage.ts";
import { latestTimelineOf } from "./latest-timeline.ts";

/** Returns the PostgreSQL database of an environment, and how its primary is found. */
export function postgresOf(storage: StorageConfig, urls: StorageUrls = storageUrlsOf(storage)) {
  const { databaseUrl: url = "", environment: schema, acceptsPrimary: acceptsAny } = storage;
  const readUrl = () => urls.databaseUrl() ?? url;
  return { url, readUrl, schema, acceptsAny, latestTimeline: latestTimelineOf(storage, urls) };
}
