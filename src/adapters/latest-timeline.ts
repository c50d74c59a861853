import { type StorageUrls, valkeyOf } from "../config/storage-urls.ts";
import type { StorageConfig } from "../config/storage.ts";
import { isSameTimeline, type Timeline } from "../domain/timeline.ts";
import type { LatestTimeline } from "../store/postgres/primary.ts";

/**
 * The latest timeline is stored in the data directory and, if there is one, in Valkey, where processes on all machines
 * find it. What Valkey has counts for all of them. A place that cannot be used is left out, so that a server starts in
 * an outage of Valkey.
 */
export function latestTimelineOf(storage: StorageConfig, urls: StorageUrls): LatestTimeline {
  const here = storage.directory.latestTimeline;
  const shared = storage.limitsUrls ? valkeyTimeline(storage, urls) : undefined;
  return {
    async raise(timeline) {
      const latestHere = await here.raise(timeline).catch(() => timeline);
      const latest = (await shared?.raise(latestHere).catch(() => undefined)) ?? latestHere;
      if (!isSameTimeline(latest, latestHere)) await here.replace(latest).catch(() => {});
      return latest;
    },
    async replace(timeline) {
      await Promise.allSettled([here.replace(timeline), shared?.replace(timeline)]);
    },
  };
}

function valkeyTimeline(storage: StorageConfig, urls: StorageUrls): LatestTimeline {
  const store = async (timeline: Timeline, condition: "if later" | "always") =>
    (await import("../rate-limit/valkey/maintenance.ts")).storeTimeline(
      valkeyOf(storage, urls),
      timeline,
      condition,
    );
  return {
    raise: (timeline) => store(timeline, "if later"),
    async replace(timeline) {
      await store(timeline, "always");
    },
  };
}
