/** @import { ResponseMetadata } from "./index.d.ts" */

/**
 * After this time without a response, other clients of the key may have used up the limit. A burst would then be
 * rejected as a whole, and ten late rejections ban a key, so only a few requests find out.
 */
const STALE_MS = 1_000;
const MAX_IN_PROGRESS_STALE = 3;
/** A longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Holds requests back that would exceed the rate limit, in the order in which they came. It knows what the headers
 * say: of each window the fewest requests left. Requests in progress may not be in that number yet, so they are
 * subtracted. While no window is known, one request at a time asks for it.
 */
export class RateLimiter {
  /** By the time at which a window closes, in the server's seconds.
   * @type {Map<number, { remaining: number, closesAt: number }>} */
  #windows = new Map();
  #inProgress = 0;
  #pausedUntil = 0;
  #learnedAt = 0;
  /** The headers are hidden, for example by CORS: there is nothing to wait for. */
  #isBlind = false;
  /** @type {Set<() => void>} */
  #waiting = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * Resolves when a request may be sent. Each one that is sent must end with `release`.
   *
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<void>}
   */
  acquire(signal) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const stop = () => {
        this.#waiting.delete(start);
        this.#startWaiting();
        reject(signal?.reason);
      };
      const start = () => {
        signal?.removeEventListener("abort", stop);
        this.#inProgress++;
        resolve();
      };
      signal?.addEventListener("abort", stop, { once: true });
      this.#waiting.add(start);
      this.#startWaiting();
    });
  }

  /**
   * @param {ResponseMetadata | undefined} response undefined if there was none.
   */
  release(response) {
    this.#inProgress--;
    if (response) this.#learn(response);
    this.#startWaiting();
  }

  /**
   * Nothing is sent for this time.
   *
   * @param {number} ms
   */
  pause(ms) {
    this.#pausedUntil = Math.max(this.#pausedUntil, Date.now() + ms);
    this.#startWaiting();
  }

  /** @param {ResponseMetadata} response */
  #learn({ status, headers, rateLimit }) {
    if (!rateLimit) {
      this.#isBlind ||= status < 300;
      return;
    }
    this.#isBlind = false;
    const { remaining, resetAt } = rateLimit;
    const key = resetAt.getTime();
    const now = Date.now();
    this.#learnedAt = now;
    // Both are the server's, so a client whose clock is wrong waits as long as one whose clock is right.
    const date = Date.parse(headers.get("Date") ?? "");
    const closesAt = now + key - (Number.isNaN(date) ? now : date);
    const known = this.#windows.get(key);
    this.#windows.set(key, {
      remaining: Math.min(remaining, known?.remaining ?? remaining),
      closesAt: Math.max(closesAt, known?.closesAt ?? closesAt),
    });
  }

  #startWaiting() {
    clearTimeout(this.#timer);
    for (const start of this.#waiting) {
      const wait = this.#wait();
      if (wait > 0) {
        if (wait < Infinity)
          this.#timer = setTimeout(() => this.#startWaiting(), Math.min(wait, MAX_TIMER_MS));
        return;
      }
      this.#waiting.delete(start);
      start();
    }
  }

  /** How long the next request has to wait, in milliseconds; Infinity: until a request in progress ends. */
  #wait() {
    const now = Date.now();
    if (this.#pausedUntil > now) return this.#pausedUntil - now;
    if (this.#isBlind) return 0;
    for (const [key, { closesAt }] of this.#windows) if (closesAt <= now) this.#windows.delete(key);
    const windows = [...this.#windows.values()];
    if (windows.length === 0) return this.#inProgress === 0 ? 0 : Infinity;
    const isStale = now - this.#learnedAt > STALE_MS;
    if (isStale && this.#inProgress >= MAX_IN_PROGRESS_STALE) return Infinity;
    const exhausted = windows.filter(({ remaining }) => remaining <= this.#inProgress);
    return exhausted.length === 0 ? 0 : Math.max(...exhausted.map(({ closesAt }) => closesAt - now));
  }
}
