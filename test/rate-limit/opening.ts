import type { UsageStore } from "../../src/domain/ports.ts";
import { createMemoryRateLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import type { OpenLimiter } from "../conformance/limiter.ts";
import { MapUsageStore } from "./ledgers.ts";

/** So long that only closing writes: no tick of real time comes between the steps of a test. */
const NEVER_MS = 3_600_000;

/** Opens in-process limiters, each on the usageStore that `usageStores` gives; asked again at a restart. */
export function openOn(usageStores: () => () => UsageStore): OpenLimiter {
  return ({ ban, startsAt }) => {
    let time = startsAt;
    const clock = { now: () => time };
    const openUsageStore = usageStores();
    const start = () =>
      createMemoryRateLimiter({ clock, ban, usageStore: openUsageStore(), flushEveryMs: NEVER_MS });
    let rateLimiter = start();
    return {
      get rateLimiter() {
        return rateLimiter;
      },
      now: clock.now,
      advance: (ms) => void (time += ms),
      async restart() {
        await rateLimiter.close();
        rateLimiter = start();
      },
      close: () => rateLimiter.close(),
    };
  };
}

export const openOnMaps = openOn(() => {
  const usageStore = new MapUsageStore();
  return () => usageStore;
});
