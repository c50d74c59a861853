import type { RateLimiter, QuotaStore } from "../../src/domain/ports/rate-limiter.ts";
import type { Awaitable } from "../../src/runtime/awaitable.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory-rate-limiter.ts";
import type { OpenRateLimiter, RateLimiterUnderTest } from "../conformance/rate-limiter.ts";
import { TestClock } from "../test-clock.ts";
import { MapQuotaStore } from "./map-quota-store.ts";

/** A time so long that only `close` writes: no timer fires between the steps of a test. */
const NEVER_MS = 3_600_000;

/** Opens in-process rate limiters, each on a place of its own; a restart opens the store of that place again. */
export function openOn(newPlace: () => () => QuotaStore): OpenRateLimiter {
  return ({ ban, startsAt, onBan }) => {
    const clock = new TestClock(startsAt);
    const openQuotaStore = newPlace();
    return restartable(
      clock,
      () =>
        new MemoryRateLimiter({
          clock,
          ban: () => ban,
          onBan,
          quotaStore: openQuotaStore(),
          flushEveryMs: NEVER_MS,
        }),
    );
  };
}

export async function restartable(
  clock: TestClock,
  start: () => Awaitable<RateLimiter>,
): Promise<RateLimiterUnderTest> {
  let rateLimiter = await start();
  return {
    get rateLimiter() {
      return rateLimiter;
    },
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    async restart() {
      await rateLimiter.close();
      rateLimiter = await start();
    },
    close: () => rateLimiter.close(),
  };
}

export const openOnMaps = openOn(() => {
  const quotaStore = new MapQuotaStore();
  return () => quotaStore;
});
