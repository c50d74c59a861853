import { AdmissionFilter } from "../bounded-cache.ts";
import { Budget } from "../api/budget.ts";
import { Overloaded, type Unavailable } from "../api/errors.ts";
import { type Awaitable, type Scheduler, scheduler } from "../event-loop.ts";
import type { Clock } from "../domain/ports.ts";
import { hashText } from "../hash-index.ts";
import type { ApiKeyPrincipal, AuthFailure } from "../domain/api-keys.ts";

type LookupResult = ApiKeyPrincipal | AuthFailure;

const MAX_RUNNING = 16;
const MAX_WAITING = 1_000;
/** That may wait in addition: secrets that were rejected before because too many waited. */
const MAX_REPEATED = 100;
/** After a lookup that found no key: 16 in 10 ms are at most 1,600 a second. */
const PAUSE_MS = 10;
const REMEMBERED_SECRETS = 65_536;

/**
 * Lookups of secrets that were never verified. Anybody can send such secrets, so few lookups run at a time, and only
 * as many wait as are done in a fraction of a second. A secret that found too many waiting, and is sent again, comes
 * first: clients with a new key do that, and guesses differ.
 *
 * Secrets that no key has are looked up at a bounded rate, many together. Otherwise clients that guess, each from
 * another address, take so much time that other requests wait for 100 ms (`npm run attacks -- --engines shared --only
 * many-addresses`).
 */
export class LookupQueue {
  #running = 0;
  #isPaused = false;
  readonly #waiting: (() => void)[] = [];
  readonly #rejected = new AdmissionFilter(REMEMBERED_SECRETS);
  readonly #scheduler: Scheduler;

  constructor(time = scheduler) {
    this.#scheduler = time;
  }

  /** Lookups that wait. */
  get length(): number {
    return this.#waiting.length;
  }

  /** `mayRun` is asked at once, and again after a wait: the client may have reached its limit meanwhile. */
  run(secret: string, work: () => Awaitable<LookupResult>, mayRun: () => boolean): Awaitable<LookupResult> {
    if (!mayRun()) return tooMany();
    if (this.#hasPlace) return this.#start(work);
    const isFull = this.#waiting.length >= MAX_WAITING;
    if (isFull && !this.#isRepeated(secret)) return tooMany();
    return new Promise((resolve) => {
      const start = () => resolve(mayRun() ? Promise.try(() => this.#start(work)) : tooMany());
      if (isFull) this.#waiting.unshift(start);
      else this.#waiting.push(start);
    });
  }

  #isRepeated(secret: string): boolean {
    return this.#rejected.admits(hashText(secret) >>> 0) && this.#waiting.length < MAX_WAITING + MAX_REPEATED;
  }

  #start(work: () => Awaitable<LookupResult>): Awaitable<LookupResult> {
    this.#running++;
    let isPending = false;
    try {
      const result = work();
      if (!(result instanceof Promise)) return result;
      isPending = true;
      result.then(
        (found) => {
          if (found === "invalid_api_key") this.#pause();
          this.#finish();
        },
        () => this.#finish(),
      );
      return result;
    } finally {
      if (!isPending) this.#finish();
    }
  }

  get #hasPlace(): boolean {
    return this.#running < MAX_RUNNING && !this.#isPaused;
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    const goOn = () => {
      this.#isPaused = false;
      this.#startWaiting();
    };
    this.#scheduler.setTimeout(goOn, PAUSE_MS).unref();
  }

  #finish(): void {
    this.#running--;
    this.#startWaiting();
  }

  #startWaiting(): void {
    while (this.#hasPlace && this.#waiting.length > 0) this.#waiting.shift()?.();
  }
}

function tooMany(): Unavailable {
  return new Overloaded("too many keys are being looked up");
}

const PER_SECOND = 100;
/** Secrets that are sent for the first time leave these to others. */
const RESERVED = 50;

/**
 * Lookups for clients whose address is at its limit: without them, a new key would not work behind an address from
 * which others send invalid keys. Secrets that are sent again come first, as a valid key is and guesses are not.
 */
export class LookupBudget {
  readonly #budget: Budget;
  readonly #sentBefore = new AdmissionFilter(REMEMBERED_SECRETS);

  constructor(clock: Pick<Clock, "steadyNow">) {
    this.#budget = new Budget({ max: PER_SECOND, perSecond: PER_SECOND, now: () => clock.steadyNow() });
  }

  /** Whether the secret may be looked up now. */
  take(secret: string): boolean {
    return this.#budget.take(this.#sentBefore.admits(hashText(secret) >>> 0) ? 0 : RESERVED);
  }
}
