import { RepeatFilter } from "../runtime/bounded-cache.ts";
import { TokenBucket } from "../runtime/token-bucket.ts";
import { Overloaded } from "../api/errors.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { type Scheduler, scheduler } from "../runtime/scheduler.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { ApiKeyPrincipal, AuthFailure } from "../domain/api-keys.ts";

type LookupResult = ApiKeyPrincipal | AuthFailure;

interface Lookup {
  readonly secret: string;
  readonly work: () => Awaitable<LookupResult>;
  /** Returns whether the address of the client is at its limit. It is called at once, and again after a wait. */
  readonly isLimited: () => boolean;
}

const MAX_RUNNING = 16;
const MAX_WAITING = 1_000;
/** The number of lookups that may wait in addition, of secrets that are sent again. */
const MAX_REPEATED = 100;
/** The pause after a lookup that found no key. 16 lookups in 10 ms are at most 1,600 a second. */
const PAUSE_MS = 10;
/** The rate of lookups for all clients whose address is at its limit. */
const LIMITED_PER_SECOND = 100;
/** The part of that rate for secrets that are sent again. */
const RESERVED = 50;
const REMEMBERED_SECRETS = 65_536;
/** The seed differs in every process, so that clients cannot choose texts that collide. */
const [SEED = 0] = crypto.getRandomValues(new Uint32Array(1));

interface LookupQueueOptions {
  readonly clock: Pick<Clock, "steadyNow">;
  readonly scheduler?: Scheduler | undefined;
}

/**
 * Lookups of secrets that were never verified. Anybody can send such secrets. So few lookups on PostgreSQL, which take
 * time, run at once, and only as many wait as finish within a fraction of a second. A secret that was rejected and is
 * sent again comes first: clients with a new key send it again, and guesses differ. A lookup on SQLite returns within
 * the call, in microseconds, faster than the request is read. It never waits and needs no bound.
 *
 * On PostgreSQL, unknown secrets are looked up at a bounded rate, many together. Otherwise clients that guess, each
 * from another address, take so much time that other requests wait for 100 ms (`npm run attacks -- --engines shared
 * --only many-addresses`). Clients whose address is at its limit share a small rate, so that a new key works even
 * behind an address from which others send invalid keys.
 */
export class LookupQueue {
  #running = 0;
  #isPaused = false;
  readonly #waiting: (() => void)[] = [];
  readonly #sentBefore = new RepeatFilter(REMEMBERED_SECRETS);
  readonly #bucket: TokenBucket;
  readonly #scheduler: Scheduler;

  constructor(options: LookupQueueOptions) {
    this.#scheduler = options.scheduler ?? scheduler;
    const now = () => options.clock.steadyNow();
    this.#bucket = new TokenBucket({ max: LIMITED_PER_SECOND, perSecond: LIMITED_PER_SECOND, now });
  }

  /** The number of lookups that wait. */
  get length(): number {
    return this.#waiting.length;
  }

  run({ secret, work, isLimited }: Lookup): Awaitable<LookupResult> {
    let isKnown: boolean | undefined;
    const isRepeated = () => (isKnown ??= this.#sentBefore.isRepeat(Bun.hash.xxHash32(secret, SEED)));
    let hasToken = false;
    const mayRun = () =>
      hasToken || !isLimited() || (hasToken = this.#bucket.take({ reserve: isRepeated() ? 0 : RESERVED }));
    if (!mayRun()) return tooMany();
    if (this.#hasPlace) return this.#start(work);
    const isFull = this.length >= MAX_WAITING;
    if (isFull && (!isRepeated() || this.length >= MAX_WAITING + MAX_REPEATED)) return tooMany();
    return new Promise((resolve) => {
      const start = () => resolve(mayRun() ? Promise.try(() => this.#start(work)) : tooMany());
      if (isFull) this.#waiting.unshift(start);
      else this.#waiting.push(start);
    });
  }

  #start(work: Lookup["work"]): Awaitable<LookupResult> {
    this.#running++;
    const finish = (found?: LookupResult) => {
      if (found === "invalid_api_key") this.#pause();
      this.#running--;
      this.#startWaiting();
    };
    try {
      const result = work();
      if (result instanceof Promise) result.then(finish, () => finish());
      else finish();
      return result;
    } catch (error) {
      finish();
      throw error;
    }
  }

  get #hasPlace(): boolean {
    return this.#running < MAX_RUNNING && !this.#isPaused;
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    const resume = () => {
      this.#isPaused = false;
      this.#startWaiting();
    };
    this.#scheduler.setTimeout(resume, PAUSE_MS).unref();
  }

  #startWaiting(): void {
    while (this.#hasPlace && this.#waiting.length > 0) this.#waiting.shift()?.();
  }
}

function tooMany(): Overloaded {
  return new Overloaded("too many keys are being looked up");
}
