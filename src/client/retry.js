const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8_000;
const RETRIED_STATUSES = new Set([429, 502, 503, 504]);

/**
 * 502 and 504 come from a proxy whose server is away. `idempotency_conflict` means that the first attempt, whose
 * connection broke, is still in progress.
 *
 * @param {{ status: number, code: string | undefined }} error
 */
export function isRetried({ status, code }) {
  return RETRIED_STATUSES.has(status) || code === "idempotency_conflict";
}

/**
 * Exponential backoff with full jitter, after the time that the server asked for.
 *
 * @param {number} attempt The one that failed; 1 for the first.
 * @param {number} retryAfterSeconds
 */
export function retryDelay(attempt, retryAfterSeconds = 0) {
  const range = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
  return retryAfterSeconds * 1000 + Math.random() * range;
}

/**
 * Seconds or an HTTP date; undefined if it is neither.
 *
 * @param {string | null} value
 * @param {number} now
 */
export function retryAfterSeconds(value, now) {
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - now) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
