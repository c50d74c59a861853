import { AdmissionFilter } from "../bounded-cache.ts";
import { Overloaded, type Unavailable } from "../api/errors.ts";
import type { Awaitable } from "../api/awaitable.ts";
import type { Clock } from "../domain/ports.ts";
import { hashText } from "../hash-index.ts";
import type { ApiKeyPrincipal, AuthFailure } from "./authenticator.ts";

type LookUpResult = ApiKeyPrincipal | AuthFailure;

const MAX_RUNNING = 16;
const MAX_WAITING = 1_000;
/** That may wait in addition: secrets that were rejected before because too many waited. */
const MAX_REPEATED = 100;
/** After a look-up that found no key: 16 in 10 ms are at most 1,600 a second. */
const PAUSE_MS = 10;
const REMEMBERED_SECRETS = 65_536;

/**
 * Look-ups of secrets that were never verified. Anybody can send such secrets, so few look-ups run at a time, and only
 * as many wait as are done in a fraction of a second. A secret that found too many waiting, and is sent again, comes
 * first: clients with a new key do that, and guesses differ.
 *
 * Secrets that no key has are looked up at a bounded rate, many together. Otherwise clients that guess, each from
 * another address, take so much time that other requests wait for 100 ms (`npm run attacks -- --engines shared --only
 * many-addresses`).
 */
export class LookUpQueue {
  #running = 0;
  #isPaused = false;
  readonly #waiting: (() => void)[] = [];
  readonly #rejected = new AdmissionFilter(REMEMBERED_SECRETS);

  /** Look-ups that wait. */
  get length(): number {
    return this.#waiting.length;
  }

  /** `mayRun` is asked at once, and again after a wait: the client may have reached its limit meanwhile. */
  run(secret: string, work: () => Awaitable<LookUpResult>, mayRun: () => boolean): Awaitable<LookUpResult> {
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

  #start(work: () => Awaitable<LookUpResult>): Awaitable<LookUpResult> {
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
    setTimeout(() => {
      this.#isPaused = false;
      this.#startWaiting();
    }, PAUSE_MS).unref();
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
 * Look-ups for clients whose address is at its limit: without them, a new key would not work behind an address from
 * which others send invalid keys. Secrets that are sent again come first, as a valid key is and guesses are not.
 */
export class LookUpBudget {
  readonly #clock: Pick<Clock, "steadyNow">;
  readonly #sentBefore = new AdmissionFilter(REMEMBERED_SECRETS);
  #left = PER_SECOND;
  #refilledAt: number;

  constructor(clock: Pick<Clock, "steadyNow">) {
    this.#clock = clock;
    this.#refilledAt = clock.steadyNow();
  }

  /** Whether the secret may be looked up now. */
  take(secret: string): boolean {
    const now = this.#clock.steadyNow();
    this.#left = Math.min(PER_SECOND, this.#left + ((now - this.#refilledAt) * PER_SECOND) / 1000);
    this.#refilledAt = now;
    const needed = this.#sentBefore.admits(hashText(secret) >>> 0) ? 1 : 1 + RESERVED;
    if (this.#left < needed) return false;
    this.#left--;
    return true;
  }
}
