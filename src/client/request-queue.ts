import type { ResponseMetadata } from "./response.ts";
import { MAX_TIMER_MS, onAbort } from "./retry.ts";

/**
 * After this time without a response, other clients of the key may have used up the limit. A burst would then be
 * rejected as a whole, so only a few requests find out.
 */
const STALE_MS = 1_000;
const MAX_IN_PROGRESS_STALE = 3;
/** What a success adds to the share: with less, a client that is alone again stays slow; with more, others get 429. */
const SHARE_STEP = 0.001;
const MIN_SHARE = 0.05;
/** A window that closes within this time is not used up to its last request, which another client may take. */
const SHORT_WAIT_MS = 60_000;

interface QueueOptions {
  /** The largest number of requests in progress. */
  readonly maxConcurrency: number;
  readonly waitForRateLimit: boolean;
}

/**
 * Holds requests back that would exceed `maxConcurrency` or the rate limit, in the order in which they came. It knows
 * what the headers say: of each window the fewest requests left. Requests in progress may not be in that number yet, so
 * they are subtracted. While no window is known, one request at a time asks for it.
 *
 * A 429 means that other clients use the key. The client then begins with one request at a time and one more after each
 * round of successes, and has half its share of what is left in progress, which grows again. So such clients need not
 * know of one another to settle below the limit.
 */
export class RequestQueue {
  readonly #options: QueueOptions;
  /** The windows by the time at which they close, in the server's seconds. */
  readonly #windows = new Map<number, { readonly remaining: number; readonly closesAt: number }>();
  #inProgress = 0;
  #pausedUntil = 0;
  /** The end of what the server asked for. What follows until `#pausedUntil` is random, and ends no call. */
  #limitedUntil = 0;
  #learnedAt = 0;
  /** The most requests in progress since the last 429. */
  #most = Infinity;
  /** The part of the requests left that may be in progress. */
  #share = 1;
  /** The headers are hidden, for example by CORS: there is nothing to wait for. */
  #isBlind = false;
  /** What starts each request that waits, and what announces to it how long it waits. */
  readonly #waiting = new Map<() => void, (waitMs: number) => void>();
  /** The callbacks of requests to which the wait was not announced, or was announced shorter than it is. */
  #unannounced = new Set<(waitMs: number) => void>();
  #announcedUntil = 0;
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
        this.#unannounced.delete(announce);
        if (this.#waiting.size === 0) clearTimeout(this.#timer);
      };
      const fail = (reason: unknown) => {
        end();
        reject(reason);
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
      this.#waiting.set(start, announce);
      this.#unannounced.add(announce);
      this.#startWaiting();
    });
  }

  /** `response` is undefined if there was none. */
  release(response: ResponseMetadata | undefined): void {
    this.#inProgress--;
    if (response) this.#learn(response);
    this.#startWaiting();
  }

  /** After a 429: nothing is sent for this time, and few requests after it. The server asked for `askedMs` of it. */
  pause(ms: number, askedMs: number): void {
    const now = Date.now();
    if (now >= this.#pausedUntil) this.#share = Math.max(MIN_SHARE, this.#share / 2);
    this.#most = 1;
    this.#pausedUntil = Math.max(this.#pausedUntil, now + ms);
    this.#limitedUntil = Math.max(this.#limitedUntil, now + askedMs);
    this.#startWaiting();
  }

  #learn({ status, headers, rateLimit }: ResponseMetadata): void {
    if (!rateLimit) {
      this.#isBlind ||= status < 300;
      return;
    }
    this.#isBlind = false;
    if (status < 300) {
      this.#most += 1 / this.#most;
      this.#share = Math.min(1, this.#share + SHARE_STEP);
    }
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
    for (const start of this.#waiting.keys()) {
      const wait = this.#wait();
      if (wait > 0) {
        if (wait === Infinity) return;
        this.#timer = setTimeout(() => this.#startWaiting(), Math.min(wait, MAX_TIMER_MS));
        const now = Date.now();
        const announced = this.#pausedUntil > now ? this.#limitedUntil - now : wait;
        if (announced <= 0) return;
        const until = now + announced;
        if (until > this.#announcedUntil + STALE_MS) this.#unannounced = new Set(this.#waiting.values());
        this.#announcedUntil = until;
        for (const announce of this.#unannounced) {
          this.#unannounced.delete(announce);
          announce(announced);
        }
        return;
      }
      start();
    }
  }

  /** How long the next request has to wait, in milliseconds; Infinity: until a request in progress ends. */
  #wait(): number {
    const { maxConcurrency, waitForRateLimit } = this.#options;
    if (this.#inProgress >= Math.min(maxConcurrency, this.#most)) return Infinity;
    const now = Date.now();
    if (this.#pausedUntil > now) return this.#pausedUntil - now;
    if (this.#isBlind || !waitForRateLimit) return 0;
    for (const [key, { closesAt }] of this.#windows) if (closesAt <= now) this.#windows.delete(key);
    const windows = [...this.#windows.values()];
    if (windows.length === 0) return this.#inProgress === 0 ? 0 : Infinity;
    const isStale = now - this.#learnedAt > STALE_MS;
    if (isStale && this.#inProgress >= MAX_IN_PROGRESS_STALE) return Infinity;
    const waits = windows.map(({ remaining, closesAt }) => {
      const wait = closesAt - now;
      const left = remaining * this.#share;
      if ((wait > SHORT_WAIT_MS ? left : Math.floor(left)) > this.#inProgress) return 0;
      return remaining > this.#inProgress && this.#inProgress > 0 ? Infinity : wait;
    });
    return Math.max(...waits);
  }
}
