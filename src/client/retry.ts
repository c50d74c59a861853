const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8_000;
const RETRIED_STATUSES = new Set([408, 429, 500, 502, 503, 504]);
/** A longer timer would fire at once. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1;

/**
 * 502 and 504 come from a proxy whose server is away. `idempotency_conflict` means that the first attempt, whose
 * connection broke, is still in progress.
 */
export function isRetried({ status, code }: { status: number; code: string | undefined }): boolean {
  return RETRIED_STATUSES.has(status) || code === "idempotency_conflict";
}

/** Exponential backoff with full jitter, within the `leftMs` of a call. `attempt` failed; 1 is the first. */
export function retryDelay(attempt: number, leftMs: number): number {
  const range = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1), leftMs);
  return Math.max(1, Math.floor(Math.random() * range));
}

/** Seconds or an HTTP date; undefined if it is neither. */
export function retryAfterSeconds(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - now) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** An Idempotency-Key: 128 random bits. `crypto.randomUUID` is missing on pages that were loaded without TLS. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const end = onAbort(signal, () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
    const timer = setTimeout(() => {
      end();
      resolve();
    }, ms);
  });
}

/** What a signal ends: an event listener, of which each signal has one, because Node warns of more than ten. */
class Stops extends Set<() => void> {
  handleEvent(): void {
    for (const stop of this) stop();
  }
}
const stopsOf = new WeakMap<AbortSignal, Stops>();

/** Calls `stop` when the signal is aborted, until the function that this returns is called. */
export function onAbort(signal: AbortSignal, stop: () => void): () => void {
  const stops = stopsOf.get(signal) ?? new Stops();
  stopsOf.set(signal, stops.add(stop));
  signal.addEventListener("abort", stops);
  return () => {
    stops.delete(stop);
    if (stops.size === 0) signal.removeEventListener("abort", stops);
  };
}

/**
 * A signal that is aborted with `reason` after the time, or before with `parent`; `end` frees both. Nobody waits longer
 * than 25 days.
 */
export function timeLimit(
  ms: number,
  reason: Error,
  parent: AbortSignal | undefined,
): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController();
  const follow = () => controller.abort(parent?.reason);
  if (parent?.aborted) follow();
  const unfollow = parent && onAbort(parent, follow);
  const timer = ms > MAX_TIMER_MS ? undefined : setTimeout(() => controller.abort(reason), ms);
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      unfollow?.();
    },
  };
}
