import { Unavailable } from "../contract/errors.ts";
import {
  type ApiKey,
  type Environment,
  hashSecret,
  isWellFormedSecret,
  SECRET_PREFIX,
  validUntil,
} from "../domain/api-keys.ts";
import type { Limits, Subject } from "../domain/rate-limit.ts";
import { limitsOf, type Plans } from "../domain/plans.ts";
import { andThen, type Awaitable } from "../domain/awaitable.ts";
import type { Clock, KeyStore } from "../domain/ports.ts";
import { copyOf } from "../copy-string.ts";
import { KeyCache, NONE } from "./key-cache.ts";

/** A key that may call. */
export interface ApiKeyPrincipal {
  readonly keyId: number;
  readonly subject: Subject;
  readonly limits: Limits;
}

/** Why a request has no caller. */
export type AuthFailure = "missing_api_key" | "invalid_api_key" | Unavailable;

export interface AuthenticatorOptions {
  readonly keys: Pick<KeyStore, "findCredential" | "changesSince">;
  readonly environment: Environment;
  readonly plans: Plans;
  readonly clock: Clock;
  readonly maxKnown?: number;
}

const BEARER = /^bearer(?: +(.*))?$/i;
const MAX_KNOWN = 1_000_000;
const MAX_STRANGERS = 10_000;
/** The scheme, a blank and a secret take 52 characters; any number of blanks would do, and take up memory. */
const MAX_LENGTH = 60;

/**
 * From `Authorization` to the caller. A secret that was seen before costs one look-up in a table. What was learned is
 * forgotten when the key changes, and `follow` brings the changes made elsewhere.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #known: KeyCache;
  readonly #prefix: string;
  /** What nearly every header begins with. Any other way to write it is understood too, and takes longer. */
  readonly #usualStart: string;
  readonly #strangers = new Set<string>();
  #strangersAt = -1;
  #revision: number;

  private constructor(options: AuthenticatorOptions, revision: number) {
    this.#options = options;
    this.#known = new KeyCache(options.maxKnown ?? MAX_KNOWN);
    this.#prefix = SECRET_PREFIX[options.environment];
    this.#usualStart = `Bearer ${this.#prefix}`;
    this.#revision = revision;
  }

  static async open(options: AuthenticatorOptions): Promise<Authenticator> {
    const { revision } = await options.keys.changesSince(Number.MAX_SAFE_INTEGER);
    return new Authenticator(options, revision);
  }

  find(authorization: string | null): Awaitable<ApiKeyPrincipal | AuthFailure> {
    if (authorization === null) return "missing_api_key";
    const known = authorization.startsWith(this.#usualStart)
      ? this.#known.find(authorization, this.#usualStart.length)
      : NONE;
    return known === NONE ? this.#read(authorization) : this.#recognise(known);
  }

  #recognise(known: number): ApiKeyPrincipal | "invalid_api_key" {
    const until = this.#known.validUntil(known);
    // The clock is not asked for nothing: that takes as long as finding the secret.
    if (until !== Infinity && this.#options.clock.now() >= until) return "invalid_api_key";
    return callerOf(this.#known.keyId(known), this.#known.limits(known));
  }

  #read(authorization: string): Awaitable<ApiKeyPrincipal | AuthFailure> {
    if (this.#isKnownStranger(authorization)) return "invalid_api_key";
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined || secret === "") return "missing_api_key";
    if (!isWellFormedSecret(secret, this.#options.environment)) return "invalid_api_key";
    const known = this.#known.find(secret, this.#prefix.length);
    return known === NONE ? this.#learn(secret, authorization) : this.#recognise(known);
  }

  /** Strangers are remembered until any key changes: a secret that nobody has does not become one meanwhile. */
  #isKnownStranger(authorization: string): boolean {
    if (this.#strangersAt !== this.#revision) {
      this.#strangers.clear();
      this.#strangersAt = this.#revision;
    }
    return this.#strangers.has(authorization);
  }

  /** Nothing is remembered of what was read before a change came in: it may be what has changed. */
  #learn(secret: string, authorization: string): Awaitable<ApiKeyPrincipal | AuthFailure> {
    const { keys, plans, clock } = this.#options;
    const revision = this.#revision;
    const found = unlessUnavailable(() => keys.findCredential(hashSecret(secret)));
    return andThen(found, (credential) => {
      if (credential instanceof Unavailable) return credential;
      const isCurrent = revision === this.#revision;
      const tail = secret.slice(this.#prefix.length);
      if (credential === undefined || clock.now() >= validUntil(credential)) {
        this.#known.forget(tail);
        if (isCurrent) this.#rememberStranger(authorization);
        return "invalid_api_key";
      }
      const { key } = credential;
      const limits = limitsOf(key, plans);
      if (isCurrent) this.#known.add(tail, { keyId: key.id, limits, validUntil: validUntil(credential) });
      return callerOf(key.id, limits);
    });
  }

  #rememberStranger(authorization: string): void {
    if (this.#strangers.size < MAX_STRANGERS && authorization.length <= MAX_LENGTH)
      this.#strangers.add(copyOf(authorization));
  }

  /** Learns what changed since the last call; returns the keys that did. */
  async follow(): Promise<readonly ApiKey[]> {
    const { revision, changed } = await this.#options.keys.changesSince(this.#revision);
    for (const { id } of changed) this.#known.forgetKey(id);
    this.#revision = revision;
    return changed;
  }
}

/** The name is made for each request: with many keys, one that is kept lies cold in memory and costs more to fetch. */
function callerOf(keyId: number, limits: Limits): ApiKeyPrincipal {
  return { keyId, subject: `key:${keyId}`, limits };
}

/** An engine that is gone makes a stranger of a key not seen before; it is no reason to fail before the limits. */
function unlessUnavailable<T>(work: () => Awaitable<T>): Awaitable<T | Unavailable> {
  try {
    const result = work();
    return result instanceof Promise ? result.catch(onlyUnavailable) : result;
  } catch (error) {
    return onlyUnavailable(error);
  }
}

function onlyUnavailable(error: unknown): Unavailable {
  if (error instanceof Unavailable) return error;
  throw error;
}
