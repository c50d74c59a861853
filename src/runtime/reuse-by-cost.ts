import { scheduler } from "./scheduler.ts";

const REUSED_FOR_COST = 100;
const MAX_REUSED_MS = 30_000;
/** The cost of loading that is assumed before the first load. */
const USUAL_COST_MS = 20;

/**
 * How long a value is reused: a hundred times as long as it took to load, at most 30 seconds. So loading takes at most
 * a hundredth of the time, however often the value is used.
 */
export function reuseForMs(costMs: number): number {
  return Math.min(MAX_REUSED_MS, REUSED_FOR_COST * costMs);
}

/**
 * Loads a value and reuses it for as long as `reuseForMs` says. Of the last two costs the shorter one counts: the start
 * of a thread, or a busy moment, is no cost of the value. After an error, the next call loads again.
 */
export function reuseByCost<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  let validUntil = 0;
  let lastCostMs = USUAL_COST_MS;
  return () => {
    const startedAt = scheduler.now();
    if (loaded && startedAt < validUntil) return loaded;
    loaded = load();
    validUntil = Infinity;
    loaded.then(
      () => {
        const now = scheduler.now();
        const costMs = now - startedAt;
        validUntil = now + reuseForMs(Math.min(costMs, lastCostMs));
        lastCostMs = costMs;
      },
      () => (validUntil = 0),
    );
    return loaded;
  };
}
