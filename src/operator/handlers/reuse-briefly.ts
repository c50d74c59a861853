import { scheduler } from "../../runtime/scheduler.ts";

const REUSED_FOR_COST = 100;
const MAX_REUSED_MS = 30_000;
/** The cost of loading that is assumed before the first load. */
const USUAL_COST_MS = 20;

/**
 * Loads a value and reuses it for a hundred times as long as loading took, at most 30 seconds. So loading takes at most
 * a hundredth of the time, however often the value is used. Of the last two times the shorter one counts: the start of
 * a thread, or a busy moment, is no cost of the value. After an error, the next call loads again.
 */
export function reuseBriefly<T>(load: () => Promise<T>): () => Promise<T> {
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
        validUntil = now + Math.min(MAX_REUSED_MS, REUSED_FOR_COST * Math.min(costMs, lastCostMs));
        lastCostMs = costMs;
      },
      () => (validUntil = 0),
    );
    return loaded;
  };
}
