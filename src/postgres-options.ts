import { readDatabaseUrl, type StorageConfig, valkeyOf } from "./config/config.ts";
import type { HighestTimeline } from "./store/postgres/primary.ts";

/** Returns the PostgreSQL database of an environment, and how its primary is found. */
export function postgresOf(storage: StorageConfig) {
  const { databaseUrl: url = "", environment: schema, acceptsPrimary: acceptsAny } = storage;
  const readUrl = () => readDatabaseUrl(storage) ?? url;
  return { url, readUrl, schema, acceptsAny, highestTimeline: highestTimelineOf(storage) };
}

/**
 * The highest timeline is stored in the data directory and, if there is one, in Valkey, where processes on all machines
 * find it. A place that cannot be used is left out, so that a server starts in an outage of Valkey.
 */
function highestTimelineOf(storage: StorageConfig): HighestTimeline {
  const places = [
    storage.directory.highestTimeline,
    ...(storage.limitsUrls ? [valkeyTimeline(storage)] : []),
  ];
  return {
    async raise(timeline) {
      const stored = await Promise.allSettled(places.map((place) => place.raise(timeline)));
      return Math.max(...stored.map((each) => (each.status === "fulfilled" ? each.value : 0)));
    },
    async replace(timeline) {
      await Promise.allSettled(places.map((place) => place.replace(timeline)));
    },
  };
}

function valkeyTimeline(storage: StorageConfig): HighestTimeline {
  const store = async (timeline: number, condition: "if higher" | "always") =>
    (await import("./rate-limit/valkey/maintenance.ts")).storeTimeline(
      valkeyOf(storage),
      timeline,
      condition,
    );
  return {
    raise: (timeline) => store(timeline, "if higher"),
    async replace(timeline) {
      await store(timeline, "always");
    },
  };
}
