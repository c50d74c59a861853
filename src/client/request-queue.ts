import type { ResponseMetadata } from "./response.ts";
import { MAX_TIMER_MS, onAbort } from "./retry.ts";

/**
 * After this time without a response, other clients of the key may have used up the limit. A burst would then be
 * rejected as a whole, and ten late rejections ban a key, so only a few requests find out.
 */
const STALE_MS = 1_000;
const MAX_IN_PROGRESS_STALE = 3;

interface QueueOptions {
  /** The largest number of requests in progress. */
  readonly maxConcurrency: number;
  readonly waitForRateLimit: boolean;
}

/**
 * Holds requests back that would exceed `maxConcurrency` or the rate limit, in the order in which they came. It knows
 * what the headers say: of each window the fewest requests left. Requests in progress may not be in that number yet, so
 * they are subtracted. While no window is known, one request at a time asks for it.
 */
export class RequestQueue {
  readonly #options: QueueOptions;
  /** The windows by the time at which they close, in the server's seconds. */
  readonly #windows = new Map<number, { readonly remaining: number; readonly closesAt: number }>();
  #inProgress = 0;
  #pausedUntil = 0;
  #learnedAt = 0;
  /** The headers are hidden, for example by CORS: there is nothing to wait for. */
  #isBlind = false;
  readonly #waiting = new Set<() => void>();
  /** Announces to each request that waits how long it waits, once. */
  readonly #announcements = new Set<(waitMs: number) => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /** Resolves when a request may be sent. Each one that is sent must end with `release`. */
  acquire(signal: AbortSignal, onWait: (waitMs: number) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const end = () => {
        ignoreAbort();
        this.#waiting.delete(start);
        this.#announcements.delete(announce);
      };
      const fail = (reason: unknown) => {
        end();
        reject(reason);
        this.#startWaiting();
      };
      const start = () => {
        end();
        this.#inProgress++;
        resolve();
      };
      const announce = (waitMs: number) => {
        try {
          onWait(waitMs);
        } catch (error) {
          fail(error);
        }
      };
      const ignoreAbort = onAbort(signal, () => fail(signal.reason));
      this.#waiting.add(start);
      this.#announcements.add(announce);
      this.#startWaiting();
    });
  }

  /** `response` is undefined if there was none. */
  release(response: ResponseMetadata | undefined): void {
    this.#inProgress--;
    if (response) this.#learn(response);
    this.#startWaiting();
  }

  /** Nothing is sent for this time. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, Date.now() + ms);
    this.#startWaiting();
  }

  #learn({ status, headers, rateLimit }: ResponseMetadata): void {
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

  #startWaiting(): void {
    clearTimeout(this.#timer);
    for (const start of this.#waiting) {
      const wait = this.#wait();
      if (wait > 0) {
        if (wait === Infinity) return;
        this.#timer = setTimeout(() => this.#startWaiting(), Math.min(wait, MAX_TIMER_MS));
        for (const announce of this.#announcements) {
          this.#announcements.delete(announce);
          announce(wait);
        }
        return;
      }
      start();
    }
  }

  /** How long the next request has to wait, in milliseconds; Infinity: until a request in progress ends. */
  #wait(): number {
    const { maxConcurrency, waitForRateLimit } = this.#options;
    if (this.#inProgress >= maxConcurrency) return Infinity;
    const now = Date.now();
    if (this.#pausedUntil > now) return this.#pausedUntil - now;
    if (this.#isBlind || !waitForRateLimit) return 0;
    for (const [key, { closesAt }] of this.#windows) if (closesAt <= now) this.#windows.delete(key);
    const windows = [...this.#windows.values()];
    if (windows.length === 0) return this.#inProgress === 0 ? 0 : Infinity;
    const isStale = now - this.#learnedAt > STALE_MS;
    if (isStale && this.#inProgress >= MAX_IN_PROGRESS_STALE) return Infinity;
    const exhausted = windows.filter(({ remaining }) => remaining <= this.#inProgress);
    return exhausted.length === 0 ? 0 : Math.max(...exhausted.map(({ closesAt }) => closesAt - now));
  }
}
